-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: correcting a message that no target has received.

-- Has this target received it, or will it, only because it failed at another one? Then it does not count as a delivery.
CREATE OR REPLACE FUNCTION outbox_is_dead_letter_only(m outbox_message, d outbox_detour, p_version bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
	SELECT (d).dead_target IS NOT NULL AND NOT outbox_is_routed(m, (d).target, p_version)
$$;

-- Does this delivery allow the message to be amended? True: it is still to be delivered here.
CREATE OR REPLACE FUNCTION outbox_may_amend(m outbox_message, d outbox_detour, p_version bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	IF d.state = 'sending' THEN
		RAISE EXCEPTION 'it is being sent to % right now; try again', d.target USING ERRCODE = 'OB002';
	ELSIF outbox_is_dead_letter_only(m, d, p_version) THEN
		RETURN false;
	ELSIF d.state = 'delivered' THEN
		RAISE EXCEPTION 'it was delivered to %, so it cannot be amended: publish a correction, and discard what is left of this one', d.target
			USING ERRCODE = 'OB002';
	END IF;
	RETURN coalesce(d.state IN ('pending', 'failed'), false);
END $$;

-- Keep the former version and write the new one, whichever table the message is in.
CREATE OR REPLACE FUNCTION outbox_amend_message(p_seq bigint, p_payload text, p_payload_bin bytea, p_content_type text,
	p_headers text, p_actor text, p_reason text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	INSERT INTO outbox_amended (seq, n, at, actor, reason, content_type, headers, payload, payload_bin)
	SELECT p_seq, (SELECT coalesce(max(a.n), 0) + 1 FROM outbox_amended a WHERE a.seq = p_seq), p_now, p_actor, p_reason,
		m.content_type, m.headers, m.payload, m.payload_bin
	FROM (SELECT l.content_type, l.headers, l.payload, l.payload_bin FROM outbox_message l WHERE l.seq = p_seq
		UNION ALL SELECT k.content_type, k.headers, k.payload, k.payload_bin FROM outbox_kept k WHERE k.seq = p_seq
		LIMIT 1) m;
	PERFORM set_config('outbox.redact', p_seq::text, true);
	UPDATE outbox_message SET payload = p_payload, payload_bin = p_payload_bin, content_type = p_content_type,
		headers = p_headers WHERE seq = p_seq;
	UPDATE outbox_kept SET payload = p_payload, payload_bin = p_payload_bin, content_type = p_content_type,
		headers = p_headers WHERE seq = p_seq;
	PERFORM set_config('outbox.redact', '', true);
END $$;

-- A new payload, content type and headers for a message that is still to be delivered and that no target has received. It
-- keeps its id and its place; what failed or waits for a retry is due at once, with attempts 0. With the owner's rights, so
-- that relays need none to change messages. parked: deliveries that follow it in its key.
CREATE OR REPLACE FUNCTION outbox_amend(p_id text, p_payload text, p_payload_bin bytea, p_content_type text, p_headers text,
	p_actor text, p_reason text, p_token bigint, p_now timestamptz, OUT requeued bigint, OUT parked bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	m outbox_message;
	again outbox_act_order;
	t record;
	look record;
	lane integer;
	now timestamptz;
	alive boolean := false;
	waits text[] := '{}';
	other text;
BEGIN
	PERFORM outbox_commit_durably();
	SELECT x.xid, x.seq, x.slot, x.id, x.type, x.key, x.kind, x.published, x.priority, x.headers, x.payload
	INTO m.xid, m.seq, m.slot, m.id, m.type, m.key, m.kind, m.published, m.priority, m.headers, m.payload
	FROM (SELECT l.xid, l.seq, l.slot, l.id, l.type, l.key, l.kind, l.published, l.priority, l.headers, l.payload
			FROM outbox_message l WHERE l.id = p_id
		UNION ALL SELECT k.xid, k.seq, k.slot, k.id, k.type, k.key, k.kind, k.published, k.priority, k.headers, k.payload
			FROM outbox_kept k WHERE k.id = p_id) x ORDER BY x.seq LIMIT 1;
	IF m.seq IS NULL THEN
		RAISE EXCEPTION 'no message with the id "%"', left(p_id, 255) USING ERRCODE = 'OB001';
	ELSIF EXISTS (SELECT FROM outbox_message l WHERE l.id = p_id AND l.seq <> m.seq)
			OR EXISTS (SELECT FROM outbox_kept k WHERE k.id = p_id AND k.seq <> m.seq) THEN
		RAISE EXCEPTION 'several messages have this id, so it does not identify one of them' USING ERRCODE = 'OB002';
	END IF;
	lane := m.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	FOR t IN SELECT o.name FROM outbox_target o ORDER BY outbox_dead_depth(o.name) DESC, o.name LOOP
		PERFORM outbox_lock_lane(t.name, lane);
	END LOOP;
	now := outbox_now(p_now);
	again.action := 'requeue';
	again.actor := p_actor;
	again.reason := p_reason;
	requeued := 0;
	FOR t IN SELECT o.name, o.version, o.hold FROM outbox_target o ORDER BY o.name LOOP
		look := outbox_act_look(t.name, m.seq, lane);
		IF (look.d).state = 'sending' AND NOT outbox_lane_is_leased(t.name, lane, now) THEN
			PERFORM outbox_fence_owner(t.name, lane, p_actor, p_token, now);
			look := outbox_act_look(t.name, m.seq, lane);
		END IF;
		CONTINUE WHEN NOT outbox_may_amend(m, look.d, t.version);
		alive := true;
		IF (look.d).state = 'failed' OR (look.d).why = 'retry' THEN
			requeued := requeued + 1;
			waits := waits || t.name;
		END IF;
	END LOOP;
	IF NOT alive OR m.payload = '{"redacted":true}' AND m.key LIKE 'redacted-%' THEN
		RAISE EXCEPTION 'none of its deliveries is left to send, so there is nothing to amend: publish a correction'
			USING ERRCODE = 'OB002';
	END IF;
	-- A lane that has passed it would take it for delivered, or forget that it was.
	SELECT o.target INTO other FROM outbox_route o JOIN outbox_target u ON u.name = o.target
		WHERE o.headers IS NOT NULL AND outbox_headers_take(o.headers, m.headers) <> outbox_headers_take(o.headers, p_headers)
		ORDER BY o.target LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'whether % gets it goes by its headers: leave those as they are, or discard it and publish a correction', other
			USING ERRCODE = 'OB002';
	END IF;
	PERFORM outbox_amend_message(m.seq, p_payload, p_payload_bin, p_content_type, p_headers, p_actor, p_reason, now);
	INSERT INTO outbox_audit (at, actor, action, id, seq, reason) VALUES (now, p_actor, 'amend', p_id, m.seq, p_reason);
	FOR t IN SELECT o.name, o.hold FROM outbox_target o WHERE o.name = ANY (waits) ORDER BY o.name LOOP
		look := outbox_act_look(t.name, m.seq, lane);
		PERFORM outbox_change(look.d, look.has_row, look.ahead, again, t.hold, now);
	END LOOP;
	SELECT count(*) INTO parked FROM (SELECT FROM outbox_detour d WHERE d.target = ANY (waits) AND d.key = m.key
		AND d.state = 'pending' AND d.why = 'parked' AND d.seq > m.seq LIMIT 100001) p;
END $$;

-- The former versions, oldest first.
CREATE OR REPLACE FUNCTION outbox_read_amended(p_id text) RETURNS SETOF outbox_amended
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT a.* FROM outbox_amended a WHERE a.seq IN (SELECT l.seq FROM outbox_message l WHERE l.id = p_id
		UNION ALL SELECT k.seq FROM outbox_kept k WHERE k.id = p_id) ORDER BY a.seq, a.n
$$;

-- Messages that may have changed since they were read ahead.
-- (plpgsql keeps the plan.)
CREATE OR REPLACE FUNCTION outbox_any_amended(p_first bigint, p_last bigint) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	RETURN EXISTS (SELECT FROM outbox_amended a WHERE a.seq BETWEEN p_first AND p_last);
END $$;

-- They are removed with their messages. There are few, so all are examined.
CREATE OR REPLACE FUNCTION outbox_purge_amended() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
	DELETE FROM outbox_amended a WHERE NOT EXISTS (SELECT FROM outbox_message m WHERE m.seq = a.seq)
		AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.seq = a.seq)
$$;
