-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: removing personal data from a message.

-- The ids of messages with this key, or with keys like this glob, among the next p_rows messages behind p_after. There is no
-- index on keys. The last row has no id: so many were looked at, up to this seq.
CREATE OR REPLACE FUNCTION outbox_find_key(p_key text, p_glob text, p_after bigint, p_rows bigint)
RETURNS TABLE (id text, looked bigint, last_seq bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off AS $$
	WITH page AS MATERIALIZED (
		SELECT b.seq, b.id, b.key FROM (
			(SELECT m.seq, m.id, m.key FROM outbox_message m WHERE m.seq > p_after ORDER BY m.seq LIMIT p_rows)
			UNION
			(SELECT k.seq, k.id, k.key FROM outbox_kept k WHERE k.seq > p_after ORDER BY k.seq LIMIT p_rows)) b
		ORDER BY b.seq LIMIT p_rows)
	SELECT f.id, f.looked, coalesce(f.seq, 0) FROM (
		SELECT p.id, NULL::bigint AS looked, p.seq FROM page p WHERE p.key = p_key OR p.key LIKE outbox_like(p_glob)
		UNION ALL SELECT NULL, count(*), max(p.seq) FROM page p) f
	ORDER BY f.looked NULLS FIRST, f.seq
$$;

-- The first message with this id that is not redacted yet. With partitions several may have the id.
CREATE OR REPLACE FUNCTION outbox_redact_next(p_id text) RETURNS SETOF outbox_message
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT m.* FROM (SELECT l.* FROM outbox_message l WHERE l.id = p_id
		UNION ALL SELECT l.* FROM outbox_kept k CROSS JOIN LATERAL outbox_kept_message(k) l WHERE k.id = p_id) m
	WHERE NOT coalesce(m.payload = '{"redacted":true}' AND m.headers IS NULL AND m.subject IS NULL
		AND (m.key IS NULL OR m.key LIKE 'redacted-%'), false)
	ORDER BY m.seq LIMIT 1
$$;

-- Remove what may be personal, if all deliveries are finished. Returns NULL: done, there may be another; 'before': it was
-- done before. p_key: the new key, with the same slot; the caller has looked at the old one. With the owner's rights, so
-- that relays need none to change messages.
CREATE OR REPLACE FUNCTION outbox_redact(p_id text, p_key text, p_actor text, p_reason text, p_now timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	m outbox_message;
	t record;
	look record;
	lane integer;
BEGIN
	PERFORM outbox_commit_durably();
	SELECT * INTO m FROM outbox_redact_next(p_id);
	IF NOT FOUND THEN
		IF EXISTS (SELECT FROM outbox_message WHERE id = p_id) OR EXISTS (SELECT FROM outbox_kept WHERE id = p_id) THEN
			RETURN 'before';
		END IF;
		RAISE EXCEPTION 'no message with the id "%"', left(p_id, 255) USING ERRCODE = 'OB001';
	END IF;
	IF NOT EXISTS (SELECT FROM outbox_target) THEN
		RAISE EXCEPTION 'no target is registered, so it still waits for one; it can be redacted once it is delivered'
			USING ERRCODE = 'OB002';
	END IF;
	lane := m.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	FOR t IN SELECT o.name FROM outbox_target o ORDER BY outbox_dead_depth(o.name) DESC, o.name LOOP
		PERFORM outbox_lock_lane(t.name, lane);
	END LOOP;
	FOR t IN SELECT o.name FROM outbox_target o ORDER BY o.name LOOP
		look := outbox_act_look(t.name, m.seq, lane);
		IF (look.d).state NOT IN ('delivered', 'discarded') THEN
			RAISE EXCEPTION 'its delivery to % is %; only a message whose deliveries are all delivered or discarded can be redacted%',
				t.name, (look.d).state, CASE WHEN (look.d).state = 'failed' THEN ': requeue it or discard it first'
				ELSE ': wait for it or discard it first' END USING ERRCODE = 'OB002';
		END IF;
	END LOOP;
	PERFORM set_config('outbox.redact', m.seq::text, true);
	UPDATE outbox_message SET payload = '{"redacted":true}', payload_bin = NULL, headers = NULL, subject = NULL,
		content_type = NULL, key = CASE WHEN key IS NOT NULL THEN p_key END WHERE seq = m.seq;
	UPDATE outbox_kept SET payload = '{"redacted":true}', payload_bin = NULL, headers = NULL, subject = NULL,
		content_type = NULL, key = CASE WHEN key IS NOT NULL THEN p_key END WHERE seq = m.seq;
	PERFORM set_config('outbox.redact', '', true);
	UPDATE outbox_detour d SET key = CASE WHEN d.key IS NOT NULL THEN p_key END, last_error = NULL, dead_reason = NULL
		FROM outbox_target o WHERE d.target = o.name AND d.seq = m.seq;
	UPDATE outbox_attempt a SET reason = NULL, answer = NULL
		FROM outbox_target o WHERE a.target = o.name AND a.seq = m.seq;
	DELETE FROM outbox_amended WHERE seq = m.seq;
	UPDATE outbox_audit SET detail = NULL WHERE id = p_id AND detail IS NOT NULL;
	INSERT INTO outbox_audit (at, actor, action, id, seq, reason)
		VALUES (outbox_now(p_now), p_actor, 'redact', p_id, m.seq, p_reason);
	RETURN NULL;
END $$;
