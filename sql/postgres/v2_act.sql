-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL, version 2: operators' actions on a million deliveries, keys that wait, redaction.

-- How many deliveries a filter selects, all of them, and how old the oldest is. Detours by the index of their
-- state, joined to their messages as a whole, not one by one.
CREATE FUNCTION outbox_act_count(w outbox_act_filter, OUT total bigint, OUT oldest timestamptz)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET jit = off
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
	lanes integer := (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	more bigint;
	more_oldest timestamptz;
BEGIN
	w.max := 9223372036854775807;
	SELECT count(*), min(coalesce(m.created_at, k.created_at)) INTO total, oldest
	FROM outbox_target t JOIN outbox_detour d ON d.target = t.name
	LEFT JOIN outbox_message m ON m.seq = d.seq
	LEFT JOIN outbox_kept k ON k.seq = d.seq AND m.seq IS NULL
	WHERE (w.target IS NULL OR t.name = w.target) AND d.state = ANY (w.states) AND d.seq >= w.after_seq
		AND (d.seq > w.after_seq OR d.target > w.after_target)
		AND (w.why IS NULL OR d.why = w.why) AND (w.key IS NULL OR d.key = w.key)
		AND (w.changed IS NULL OR d.last_status_at <= w.changed)
		AND (w.created IS NULL OR coalesce(m.created_at, k.created_at) <= w.created)
		AND (w.type IS NULL OR coalesce(m.type, k.type) LIKE w.type)
		AND NOT coalesce(d.why = 'deferred' AND d.next_attempt_at = w.not_until, false);
	IF 'pending' = ANY (w.states) THEN
		SELECT count(*), min(m.created_at) INTO more, more_oldest
		FROM outbox_target t JOIN outbox_lane l ON l.target = t.name
		CROSS JOIN LATERAL outbox_act_unread(t.name, l.lane, lanes, t.version, w) x(seq)
		JOIN outbox_message m ON m.seq = x.seq
		WHERE (w.target IS NULL OR t.name = w.target)
			AND (w.why IS NULL OR w.why = CASE WHEN t.paused THEN 'paused' ELSE 'new' END)
			AND w.changed IS NULL;
		total := total + more;
		oldest := least(oldest, more_oldest);
	END IF;
END $$;

-- Requeue or discard failed ones, all at once: a million goes ten times as fast as one by one. Their lanes are
-- locked; who is no longer failed is left alone.
CREATE FUNCTION outbox_act_failed(o outbox_act_order, p_seqs bigint[], p_targets text[], p_changed timestamptz,
	p_now timestamptz, OUT done bigint, OUT oldest timestamptz)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	keys text[];
	whose text[];
BEGIN
	WITH was AS MATERIALIZED (
		SELECT d.target, d.seq, d.id, d.key, d.attempts, d.last_error,
			coalesce((SELECT m.created_at FROM outbox_message m WHERE m.seq = d.seq),
				(SELECT k.created_at FROM outbox_kept k WHERE k.seq = d.seq)) AS created_at
		FROM unnest(p_seqs, p_targets) u(seq, target) JOIN outbox_detour d ON d.target = u.target AND d.seq = u.seq
		WHERE d.state = 'failed' AND (p_changed IS NULL OR d.last_status_at <= p_changed)
	), noted AS (
		INSERT INTO outbox_audit (at, actor, action, target, id, seq, reason, detail)
		SELECT p_now, o.actor, o.action, w.target, w.id, w.seq, o.reason, row_to_json(x)::text
		FROM was w CROSS JOIN LATERAL (SELECT 'failed' AS state, NULL::text AS why, w.attempts, w.last_error AS error) x
		ORDER BY w.seq, w.target
	), changed AS (
		UPDATE outbox_detour d SET state = CASE WHEN o.action = 'discard' THEN 'discarded' ELSE 'pending' END,
			why = CASE WHEN o.action = 'requeue' THEN 'retry' END,
			next_attempt_at = CASE WHEN o.action = 'requeue' THEN p_now END,
			attempts = CASE WHEN o.action = 'requeue' THEN 0 ELSE d.attempts END,
			failing_since = CASE WHEN o.action <> 'requeue' THEN d.failing_since END,
			last_error = CASE WHEN o.action <> 'requeue' THEN d.last_error END,
			last_status_at = p_now, reason = o.reason, n = NULL
		FROM was w WHERE d.target = w.target AND d.seq = w.seq
	)
	SELECT count(*), min(w.created_at), array_agg(w.key), array_agg(w.target) INTO done, oldest, keys, whose FROM was w;
	PERFORM outbox_promote(t.name, t.keys, t.hold, p_now) FROM (
		SELECT t.name, t.hold, array_agg(DISTINCT u.key) AS keys FROM unnest(keys, whose) u(key, target)
		JOIN outbox_target t ON t.name = u.target WHERE u.key IS NOT NULL GROUP BY t.name, t.hold) t;
END $$;

-- As outbox_act() of version 1. New: a dry run by filter counts all of them; last_seq and last_target are where
-- the next call goes on; lanes are locked in the order of v2_dead.sql.
CREATE FUNCTION outbox_act(o outbox_act_order, w outbox_act_filter, p_now timestamptz, p_version integer,
	OUT done bigint, OUT refused bigint, OUT more boolean, OUT oldest timestamptz, OUT missing text,
	OUT refused_id text, OUT refused_target text, OUT refused_state text, OUT last_seq bigint, OUT last_target text)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
-- force_custom_plan: one for any page, made after a few, took ten times as long among a million
SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_custom_plan AS $$
DECLARE
	seqs bigint[];
	targets text[];
	lanes integer[];
	x record;
	look record;
	was outbox_detour;
	state text;
	now timestamptz;
BEGIN
	done := 0;
	refused := 0;
	more := false;
	IF cardinality(w.ids) = 0 AND o.dry_run THEN
		SELECT c.total, c.oldest INTO done, oldest FROM outbox_act_count(w) c;
		RETURN;
	ELSIF cardinality(w.ids) = 0 THEN
		w.max := w.max + 1;
		SELECT array_agg(c.seq), array_agg(c.target), array_agg(c.lane) INTO seqs, targets, lanes FROM outbox_act_select(w) c;
		IF cardinality(seqs) = w.max THEN
			more := true;
			seqs := seqs[:w.max - 1];
			last_seq := seqs[w.max - 1];
			last_target := targets[w.max - 1];
		END IF;
	ELSE
		SELECT array_agg(c.seq), array_agg(c.target), array_agg(c.lane) INTO seqs, targets, lanes FROM outbox_act_named(w) c;
		SELECT count(*), (array_agg(i.id ORDER BY i.n))[1] INTO refused, missing
			FROM unnest(w.ids) WITH ORDINALITY i(id, n)
			WHERE NOT EXISTS (SELECT FROM outbox_message l WHERE l.id = i.id)
				AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.id = i.id);
	END IF;
	IF NOT o.dry_run THEN
		PERFORM pg_advisory_xact_lock(outbox_lane_lock(l.target, l.lane)) FROM (
			SELECT u.target, u.lane FROM unnest(targets, lanes) u(target, lane) GROUP BY u.target, u.lane
			ORDER BY outbox_dead_depth(u.target) DESC, u.target, u.lane OFFSET 0) l;
	END IF;
	now := outbox_now(p_now);
	IF cardinality(w.ids) = 0 AND w.states = '{failed}' AND o.action IN ('requeue', 'discard') THEN
		SELECT c.done, c.oldest INTO done, oldest FROM outbox_act_failed(o, seqs, targets, w.changed, now) c;
		RETURN;
	END IF;

	FOR x IN SELECT u.*, t.hold FROM unnest(seqs, targets, lanes) WITH ORDINALITY u(seq, target, lane, i)
			JOIN outbox_target t ON t.name = u.target WHERE u.seq IS NOT NULL ORDER BY u.i LOOP
		look := outbox_act_look(x.target, x.seq, x.lane);
		was := look.d;
		state := was.state;
		CONTINUE WHEN state IS NULL;
		CONTINUE WHEN cardinality(w.ids) = 0 AND state <> ALL (w.states);
		CONTINUE WHEN w.changed IS NOT NULL AND was.last_status_at > w.changed;
		IF state = 'sending' AND NOT outbox_lane_is_leased(x.target, x.lane, now) THEN
			state := 'pending';
		END IF;
		IF state <> ALL (o.allowed) THEN
			refused := refused + 1;
			IF refused_id IS NULL THEN
				refused_id := was.id;
				refused_target := x.target;
				refused_state := state;
			END IF;
			CONTINUE;
		END IF;
		done := done + 1;
		oldest := least(oldest, look.created);
		CONTINUE WHEN o.dry_run;
		IF was.state = 'sending' THEN
			PERFORM outbox_fence(x.target, x.lane, o.actor, o.token, now);
			was.state := 'pending';
		END IF;
		PERFORM outbox_change(was, look.has_row, look.ahead, o, x.hold, now);
	END LOOP;
END $$;

-- ---- keys that wait ---------------------------------------------------------------------------------------

-- A key waits for its first delivery that is pending for a retry, being sent, or failed where the target says hold.
CREATE FUNCTION outbox_blocked_keys(p_target text, p_after bigint, p_after_target text, p_max bigint, p_cap bigint,
	p_now timestamptz)
RETURNS TABLE (seq bigint, id text, target text, type text, key text, lane integer, state text, why text, attempts integer,
	owner text, last_error text, reason text, event_time timestamptz, created_at timestamptz, last_status_at timestamptz,
	next_attempt_at timestamptz, since timestamptz, parked bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off SET enable_seqscan = off SET jit = off AS $$
	SELECT f.seq, f.id, f.target, coalesce(m.type, k.type), f.key, f.lane, f.state,
		CASE WHEN f.state = 'pending' THEN f.why END, f.attempts, f.owner, f.last_error, f.reason,
		coalesce(m.event_time, k.event_time), coalesce(m.created_at, k.created_at), f.last_status_at, f.next_attempt_at,
		coalesce(f.failing_since, f.last_status_at),
		(SELECT count(*) FROM (SELECT FROM outbox_detour p WHERE p.target = f.target AND p.key = f.key
			AND p.state = 'pending' AND p.why = 'parked' AND p.seq > f.seq LIMIT p_cap) n)
	FROM (SELECT d.* FROM outbox_target t
		CROSS JOIN unnest(ARRAY['pending', 'sending', 'failed']) s(state)
		CROSS JOIN LATERAL (SELECT d.* FROM outbox_detour d
			WHERE d.target = t.name AND d.state = s.state AND d.seq >= p_after AND d.key IS NOT NULL
				AND (d.seq > p_after OR d.target > p_after_target)
				AND (d.state <> 'pending' OR d.why = 'retry')
				AND NOT EXISTS (SELECT FROM outbox_detour b WHERE b.target = d.target AND b.key = d.key AND b.seq < d.seq
					AND b.state IN ('pending', 'failed')
					AND ((b.state = 'pending' AND NOT (b.why = 'deferred' AND b.next_attempt_at > p_now))
						OR (t.hold AND b.state = 'failed')))
				AND NOT EXISTS (SELECT FROM outbox_detour b WHERE b.target = d.target AND b.lane = d.lane
					AND b.state = 'sending' AND b.key = d.key AND b.seq < d.seq)
			ORDER BY d.seq LIMIT p_max) d
		WHERE (p_target IS NULL OR t.name = p_target) AND NOT t.unordered AND (s.state <> 'failed' OR t.hold)
		ORDER BY d.seq, d.target COLLATE "C" LIMIT p_max) f
	LEFT JOIN outbox_message m ON m.seq = f.seq
	LEFT JOIN outbox_kept k ON k.seq = f.seq AND m.seq IS NULL
	ORDER BY f.seq, f.target COLLATE "C"
$$;

-- ---- redaction --------------------------------------------------------------------------------------------

-- The log lets one kind of change through, made by outbox_redact() alone: outbox.redact names the message. The
-- constraints of seq and xid are of every new version of a row, so they must know it, too.
DO $do$
DECLARE
	c record;
	names text[] := ARRAY['xid is given by the log; leave it out of the INSERT',
		'seq is given by the log; leave it out of the INSERT'];
BEGIN
	FOR c IN SELECT n.nspname, o.relname, k.conname FROM pg_constraint k JOIN pg_class o ON o.oid = k.conrelid
			JOIN pg_namespace n ON n.oid = o.relnamespace
			WHERE k.conname = ANY (names) AND n.nspname = current_schema() AND k.coninhcount = 0 LOOP
		EXECUTE format('ALTER TABLE %I.%I DROP CONSTRAINT IF EXISTS %I', c.nspname, c.relname, c.conname);
	END LOOP;
END $do$;
ALTER TABLE outbox_message ADD CONSTRAINT "xid is given by the log; leave it out of the INSERT"
	CHECK (CASE WHEN current_setting('outbox.redact', true) = seq::text THEN true
		ELSE xid = pg_current_xact_id() END) NOT VALID;
ALTER TABLE outbox_message ADD CONSTRAINT "seq is given by the log; leave it out of the INSERT"
	CHECK (CASE WHEN current_setting('outbox.redact', true) = seq::text THEN true
		ELSE outbox_seq_is_from_the_log(seq) END) NOT VALID; -- which fails in a session that has published nothing

CREATE OR REPLACE FUNCTION outbox_message_keep() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' THEN
		IF coalesce(current_setting('outbox.redact', true), '') = '' THEN
			RAISE EXCEPTION 'outbox_message is a log: a message never changes after its insert; publish a new one';
		END IF;
	ELSIF current_setting('outbox.janitor', true) IS DISTINCT FROM 'on' THEN
		RAISE EXCEPTION 'outbox_message is a log: messages are removed by retention; use outbox purge, or outbox discard to stop a delivery';
	END IF;
	RETURN NULL;
END $$;

-- And whoever sets that by hand can make nothing but a tombstone.
CREATE FUNCTION outbox_message_tombstone() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	IF current_setting('outbox.redact', true) IS DISTINCT FROM OLD.seq::text OR NEW.seq <> OLD.seq
			OR NEW.xid <> OLD.xid OR NEW.id <> OLD.id OR NEW.type <> OLD.type
			OR NEW.created_at <> OLD.created_at OR NEW.event_time <> OLD.event_time
			OR NEW.payload IS DISTINCT FROM '{"redacted":true}' OR NEW.headers IS NOT NULL OR NEW.subject IS NOT NULL
			OR outbox_slot(coalesce(NEW.key, NEW.id)) <> OLD.slot THEN
		RAISE EXCEPTION 'outbox_message is a log: a message never changes after its insert; publish a new one';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER outbox_message_tombstone BEFORE UPDATE ON outbox_message
FOR EACH ROW EXECUTE FUNCTION outbox_message_tombstone();

-- The first message with this id that is no tombstone yet. With partitions several may have it.
CREATE FUNCTION outbox_redact_next(p_id text) RETURNS SETOF outbox_message
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT * FROM (SELECT * FROM outbox_message l WHERE l.id = p_id
		UNION ALL SELECT * FROM outbox_kept k WHERE k.id = p_id) m
	WHERE NOT coalesce(m.payload = '{"redacted":true}' AND m.headers IS NULL AND m.subject IS NULL
		AND (m.key IS NULL OR m.key LIKE 'redacted-%'), false)
	ORDER BY m.seq LIMIT 1
$$;

-- Take what may be personal out of it, when its deliveries are all finished. Returns NULL: done, there may be another;
-- 'before': it was done before. p_key: what its key becomes, of the same slot; the caller has looked at the key. With the owner's
-- rights, so that relays need none to change messages.
CREATE FUNCTION outbox_redact(p_id text, p_key text, p_actor text, p_reason text, p_now timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	m outbox_message;
	t record;
	look record;
	lane integer;
BEGIN
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
		PERFORM pg_advisory_xact_lock(outbox_lane_lock(t.name, lane));
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
	UPDATE outbox_audit SET detail = NULL WHERE id = p_id AND detail IS NOT NULL;
	INSERT INTO outbox_audit (at, actor, action, id, seq, reason)
		VALUES (outbox_now(p_now), p_actor, 'redact', p_id, m.seq, p_reason);
	RETURN NULL;
END $$;

-- As in settle.sql. The state is asked for in the words of the index by key: by "= 'pending'" the planner takes the
-- index by state where the statistics know of few pending ones, and walks through all of them for each key.
CREATE OR REPLACE FUNCTION outbox_promote(p_target text, p_keys text[], p_hold boolean, p_now timestamptz) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	UPDATE outbox_detour d SET next_attempt_at = p_now
	FROM (SELECT DISTINCT k FROM unnest(p_keys) k WHERE k IS NOT NULL) keys
	CROSS JOIN LATERAL (SELECT f.seq FROM outbox_detour f
		WHERE f.target = p_target AND f.key = keys.k AND f.state IN ('pending', 'failed') AND f.state <> 'failed'
			AND NOT (f.why = 'deferred' AND f.next_attempt_at > p_now)
		ORDER BY f.key, f.seq LIMIT 1) first
	WHERE d.target = p_target AND d.seq = first.seq AND d.next_attempt_at IS NULL
		AND NOT (p_hold AND EXISTS (SELECT FROM outbox_detour b WHERE b.target = p_target
			AND b.key = keys.k AND b.state = 'failed' AND b.seq < d.seq))
$$;
