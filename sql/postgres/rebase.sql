-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: positions that belong to another history.
--
-- A position names places in the log and transactions of one server. In a database that was restored from a dump
-- they are another server's, and after a TRUNCATE ... RESTART IDENTITY or a setval the places mean other messages.
-- For every message that is in the log now, the numbers stored with it still show whether it is settled: a
-- message that a position has settled is at or below its place and is visible in its snapshot, and what was
-- published here since then is above that place, or has a younger transaction. So, while nobody publishes:
--
--     the log's sequence continues after everything that was ever numbered: the floor;
--     every message up to the floor that a lane has not settled becomes a detour, due now, in order;
--     every lane is at the floor: everything up to it is settled, whatever its transaction, and nothing after it.
--
-- Messages are not touched. Only what was in flight is sent twice.

-- What is wrong with a lane, or NULL.
CREATE OR REPLACE FUNCTION outbox_lane_fault(p outbox_receipt) RETURNS outbox_fault
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT coalesce(outbox_foreign_fault(p, 1000),
		(SELECT outbox_lane_count_fault((p).target, value::integer) FROM outbox_meta WHERE name = 'lanes'),
		(SELECT ROW('sequence', format('target %s, lane %s: the log has message %s, but its sequence ends at %s: it was reset',
				(p).target, (p).lane, m.seq, outbox_log_end()), NULL)::outbox_fault
			FROM (SELECT max(seq) AS seq FROM outbox_message) m WHERE m.seq > outbox_log_end()))
$$;

-- The same for people. Programs of versions 1 to 3 call it.
CREATE OR REPLACE FUNCTION outbox_position_fault(p outbox_receipt) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT outbox_fault_text(outbox_lane_fault(p))
$$;

CREATE OR REPLACE FUNCTION outbox_last_receipts() RETURNS SETOF outbox_receipt
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT r.* FROM outbox_target t JOIN outbox_lane l ON l.target = t.name
	CROSS JOIN LATERAL (SELECT o.* FROM outbox_receipt o WHERE o.target = l.target AND o.lane = l.lane
		ORDER BY o.n DESC LIMIT 1) r
	ORDER BY l.target, l.lane
$$;

-- Why relays refuse a lane, or NULL.
CREATE OR REPLACE FUNCTION outbox_refused() RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT min(outbox_position_fault(r)) FROM outbox_last_receipts() r
$$;

-- Why nothing may be removed at all, or NULL. A position may refer to other messages; and a relay may have a target
-- that is not registered yet and needs what is published meanwhile, once it says where it starts.
CREATE OR REPLACE FUNCTION outbox_kept_by(p_now timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT coalesce('nothing is removed while relays refuse a lane: ' || outbox_refused(),
		(SELECT format('nothing is removed while target "%1$s" waits for its start: a relay is configured for it, without a start; '
			'give it one (start: oldest, now or a time, or --start %1$s=now), remove it from the configuration, or stop that relay', u.target)
		FROM outbox_unserved u WHERE u.alive_until > outbox_now(p_now)
			AND NOT EXISTS (SELECT FROM outbox_target t WHERE t.name = u.target)
		ORDER BY u.target COLLATE "C" LIMIT 1))
$$;

-- Until the transaction ends nobody publishes, and nobody has published without committing. Publishers wait for at most a
-- tenth of a second while this waits.
CREATE OR REPLACE FUNCTION outbox_stop_publishers() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	FOR i IN 1 .. 20 LOOP
		BEGIN
			PERFORM set_config('lock_timeout', '100ms', true);
			LOCK TABLE outbox_message IN SHARE ROW EXCLUSIVE MODE;
			RETURN;
		EXCEPTION WHEN lock_not_available THEN
			PERFORM pg_sleep(0.2);
		END;
	END LOOP;
	RAISE EXCEPTION 'another session has published and not committed, or has left a prepared transaction; end it, or try again later'
		USING ERRCODE = 'lock_not_available';
END $$;

-- Every message up to p_floor that this lane has not settled and that has no detour. p_foreign: the position's
-- transactions are another server's, and the log was reset as well: nothing is known, so nothing counts as settled.
CREATE OR REPLACE FUNCTION outbox_left_over(last outbox_receipt, p_floor bigint, p_foreign boolean) RETURNS SETOF outbox_message
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT m.* FROM outbox_message m, outbox_target t
	WHERE t.name = (last).target AND m.seq <= p_floor
		AND m.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes') = (last).lane
		AND (p_foreign OR NOT outbox_is_settled(m.xid, m.seq, last))
		AND outbox_is_routed(m, t.name, t.version)
		AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = t.name AND d.seq = m.seq AND d.id = m.id)
$$;

-- The detours of messages that are no longer in the log, or whose number another message has now.
CREATE OR REPLACE FUNCTION outbox_forget_gone() RETURNS void
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	DELETE FROM outbox_detour d
		WHERE NOT EXISTS (SELECT FROM outbox_message m WHERE m.seq = d.seq AND m.id = d.id)
			AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.seq = d.seq AND k.id = d.id);
	DELETE FROM outbox_cancelled c
		WHERE NOT EXISTS (SELECT FROM outbox_message m WHERE m.seq = c.seq AND m.id = c.id)
			AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.seq = c.seq AND k.id = c.id);
	DELETE FROM outbox_id i
		WHERE NOT EXISTS (SELECT FROM outbox_message m WHERE m.id = i.id)
			AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.id = i.id);
$$;

-- Realign one lane. Its owner is fenced. p_seen: a snapshot that sees every message; NULL: there is none, because some
-- messages have the transaction numbers of another server.
CREATE OR REPLACE FUNCTION outbox_rebase_lane(last outbox_receipt, p_floor bigint, p_foreign boolean, p_seen pg_snapshot, p_actor text,
	p_token bigint, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	succ outbox_receipt := outbox_next_receipt(last, p_token, coalesce(p_actor, 'operator'), p_now);
	t outbox_target;
	keys text[];
	count bigint;
BEGIN
	SELECT * INTO t FROM outbox_target o WHERE o.name = last.target;
	UPDATE outbox_detour SET state = 'pending', why = 'retry', next_attempt_at = p_now, last_status_at = p_now
		WHERE target = last.target AND lane = last.lane AND state = 'sending';
	UPDATE outbox_detour SET ahead = false WHERE target = last.target AND lane = last.lane AND ahead;
	WITH made AS (
		INSERT INTO outbox_detour (target, seq, id, key, lane, state, why, next_attempt_at, last_status_at)
		SELECT last.target, m.seq, m.id, m.key, last.lane, 'pending',
			CASE WHEN m.key IS NULL OR t.unordered THEN 'retry' ELSE 'parked' END,
			CASE WHEN m.key IS NULL OR t.unordered THEN p_now END, p_now
		FROM outbox_left_over(last, p_floor, p_foreign) m
		RETURNING outbox_detour.key)
	SELECT count(*), array_agg(DISTINCT made.key) FILTER (WHERE made.key IS NOT NULL) INTO count, keys FROM made;
	IF keys IS NOT NULL AND NOT t.unordered THEN
		PERFORM outbox_promote(last.target, keys, t.hold, p_now);
	END IF;
	succ.prev := coalesce(p_seen, '3:3:');
	succ.prev_seq := p_floor;
	-- Ours is older than those of others that published while we waited for publishers to stop.
	succ.prev_xid := CASE WHEN p_seen IS NULL THEN '0'::xid8 ELSE greatest(pg_current_xact_id(),
		(SELECT m.xid FROM outbox_message m ORDER BY m.xid DESC LIMIT 1)) END;
	succ.cur := succ.prev;
	succ.cur_seq := p_floor;
	succ.cur_xid := succ.prev_xid;
	succ.pos := 0;
	succ.claim_end := 0;
	succ.floor := CASE WHEN p_seen IS NULL THEN p_floor ELSE 0 END;
	succ.caution_end := 0;
	succ.caution_left := 0;
	PERFORM outbox_append_receipt(succ);
	UPDATE outbox_lane SET refused = NULL, refused_kind = NULL, refused_at = NULL
		WHERE target = last.target AND lane = last.lane AND refused IS NOT NULL;
	RETURN count;
END $$;

-- Only the server's identity has changed, after pg_upgrade. Anything else that is wrong is still refused.
CREATE OR REPLACE FUNCTION outbox_rename_cluster(p_dry boolean, p_actor text, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	fault outbox_fault;
BEGIN
	SELECT f.* INTO fault FROM outbox_last_receipts() r
		CROSS JOIN LATERAL coalesce(outbox_ahead_fault(r, outbox_log_end(), pg_current_snapshot()),
			outbox_reuse_fault(r, r.prev_seq, r.prev_xid, NULL), outbox_reuse_fault(r, r.cur_seq, r.cur_xid, NULL)) f
		WHERE f.what IS NOT NULL LIMIT 1;
	IF FOUND THEN
		PERFORM outbox_raise_fault(fault);
	END IF;
	IF NOT EXISTS (SELECT FROM outbox_meta WHERE name = 'cluster' AND value <> outbox_cluster()) THEN
		RETURN false;
	ELSIF NOT p_dry THEN
		UPDATE outbox_meta SET value = outbox_cluster() WHERE name = 'cluster';
		UPDATE outbox_lane SET refused = NULL, refused_kind = NULL, refused_at = NULL;
		INSERT INTO outbox_audit (at, actor, action, detail)
			VALUES (outbox_now(p_now), p_actor, 'rebase', 'same history, the server has a new name');
	END IF;
	RETURN true;
END $$;

-- The reason, and what was done, or would be, for each lane; no row: nothing is wrong.
CREATE OR REPLACE FUNCTION outbox_rebase(p_same_history boolean, p_dry boolean, p_actor text, p_token bigint, p_now timestamptz)
RETURNS TABLE (subject text, told text)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET jit = off AS $$
DECLARE
	here text := outbox_cluster();
	known text := (SELECT value FROM outbox_meta WHERE name = 'cluster');
	p outbox_receipt;
	name text;
	fault outbox_fault;
	last_seq bigint;
	ground bigint;
	strange boolean;
	seen pg_snapshot;
	count bigint;
	total bigint := 0;
	now timestamptz;
BEGIN
	PERFORM outbox_commit_durably();
	IF p_same_history THEN
		IF outbox_rename_cluster(p_dry, p_actor, p_now) THEN
			RETURN QUERY SELECT 'server'::text, format('its name is %s and was %s; every lane stays where it is', here, known);
		END IF;
		RETURN;
	END IF;
	IF NOT p_dry THEN
		PERFORM outbox_janitor_lock(true);
		FOR name IN SELECT o.name FROM outbox_target o ORDER BY outbox_dead_depth(o.name) DESC, o.name LOOP -- see dead.sql
			PERFORM outbox_lock_lane(name, -2);
			PERFORM outbox_lock_lane(name, -1);
			PERFORM outbox_lock_lanes(name);
		END LOOP;
		PERFORM outbox_stop_publishers();
	END IF;
	now := outbox_now(p_now);
	SELECT f.* INTO fault FROM outbox_target o CROSS JOIN LATERAL outbox_lane_count_fault(o.name,
		(SELECT m.value::integer FROM outbox_meta m WHERE m.name = 'lanes')) f WHERE f.what IS NOT NULL ORDER BY o.name LIMIT 1;
	IF FOUND THEN
		PERFORM outbox_raise_fault(fault);
	END IF;
	SELECT f.* INTO fault FROM outbox_last_receipts() r CROSS JOIN LATERAL coalesce(outbox_foreign_fault(r, NULL), outbox_lane_fault(r)) f
		WHERE f.what IS NOT NULL ORDER BY f.what LIMIT 1;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	subject := 'reason';
	told := fault.what;
	RETURN NEXT;
	last_seq := outbox_log_end();
	SELECT greatest(last_seq, (SELECT max(seq) FROM outbox_message), (SELECT max(seq) FROM outbox_kept),
		(SELECT max(seq) FROM outbox_detour), max(r.cur_seq)) INTO ground FROM outbox_last_receipts() r;
	IF NOT p_dry THEN
		PERFORM setval('outbox_message_seq_seq', ground) WHERE ground > last_seq;
		PERFORM outbox_forget_gone();
		seen := pg_current_snapshot();
		seen := (SELECT seen WHERE NOT EXISTS (SELECT FROM outbox_message m WHERE NOT pg_visible_in_snapshot(m.xid, seen)));
	END IF;
	FOR p IN SELECT * FROM outbox_last_receipts() LOOP
		strange := (p.cur_seq > last_seq OR EXISTS (SELECT FROM outbox_lane l WHERE l.target = p.target AND l.lane = p.lane
			AND l.refused_kind = 'log end')) AND (known <> here OR p.cur_xid >= pg_snapshot_xmax(pg_current_snapshot()));
		IF p_dry THEN
			SELECT count(*) INTO count FROM outbox_left_over(p, ground, coalesce(strange, false));
		ELSE
			count := outbox_rebase_lane(p, ground, coalesce(strange, false), seen, p_actor, p_token, now);
		END IF;
		total := total + count;
		subject := format('target %s, lane %s', p.target, p.lane);
		told := format(CASE WHEN p_dry THEN 'would continue' ELSE 'continues' END || ' after message %s; %s', ground,
			CASE count WHEN 0 THEN 'nothing before that is left to send'
				WHEN 1 THEN '1 message before that is not sent yet and comes first'
				ELSE count || ' messages before that are not sent yet and come first' END);
		RETURN NEXT;
	END LOOP;
	IF p_dry THEN
		RETURN;
	END IF;
	UPDATE outbox_target SET start = '3:3:';
	UPDATE outbox_meta SET value = here WHERE outbox_meta.name = 'cluster' AND here IS NOT NULL;
	INSERT INTO outbox_meta (name, value) VALUES ('settled', '1') ON CONFLICT DO NOTHING;
	INSERT INTO outbox_audit (at, actor, action, detail) VALUES (now, p_actor, 'rebase',
		format('every lane continues after message %s; sent first: %s', ground, total));
END $$;
