-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL, version 2: dead letters, and where a new target starts.
--
-- What fails at a target with a dead letter becomes pending there in the same transaction. A message is in the
-- same lane of every target. Locks: a lane of a target before the same lane of its dead letter; chains have no
-- loops, so nobody waits in a circle.
--
-- It may be in flight there at this very moment, as a detour or straight from the log: then it must be sent once
-- more when that is settled. dead_n says in which claim that was; claims are numbered, so it is never mistaken.

-- How many dead letters lie behind a target: who locks several takes those with the most first.
CREATE FUNCTION outbox_dead_depth(p_target text) RETURNS integer
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	WITH RECURSIVE chain(name, depth) AS (
		SELECT p_target, 0
		UNION ALL
		SELECT t.dead_letter, c.depth + 1 FROM chain c JOIN outbox_target t ON t.name = c.name
		WHERE t.dead_letter IS NOT NULL AND c.depth < 1000)
	SELECT max(depth) FROM chain
$$;

-- These have just failed; the lane is locked.
CREATE FUNCTION outbox_dead_letters(last outbox_receipt, p_seqs bigint[], p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	d outbox_target;
	there outbox_receipt;
	keys text[];
BEGIN
	SELECT o.* INTO d FROM outbox_target t JOIN outbox_target o ON o.name = t.dead_letter WHERE t.name = last.target;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	PERFORM pg_advisory_xact_lock(outbox_lane_lock(d.name, last.lane));
	there := outbox_last_receipt(d.name, last.lane);
	WITH sent AS (
		INSERT INTO outbox_detour AS o (target, seq, id, key, lane, state, why, next_attempt_at, last_status_at, ahead,
			dead_target, dead_reason, dead_attempts, dead_at, dead_n)
		SELECT d.name, f.seq, f.id, f.key, f.lane, 'pending', 'retry', p_now, p_now,
			m.seq IS NOT NULL AND NOT outbox_is_settled(m.xid, m.seq, there),
			f.target, f.last_error, f.attempts, p_now, CASE WHEN there.claim_count > 0 THEN there.n END
		FROM outbox_detour f LEFT JOIN outbox_message m ON m.seq = f.seq
		WHERE f.target = last.target AND f.seq = ANY (p_seqs)
		ON CONFLICT (target, seq) DO UPDATE SET
			dead_target = excluded.dead_target, dead_reason = excluded.dead_reason,
			dead_attempts = excluded.dead_attempts, dead_at = excluded.dead_at,
			dead_n = CASE o.state WHEN 'pending' THEN o.dead_n WHEN 'sending' THEN excluded.dead_n END,
			state = CASE WHEN o.state = 'sending' THEN o.state ELSE 'pending' END,
			why = CASE WHEN o.state IN ('pending', 'sending') THEN o.why ELSE 'retry' END,
			next_attempt_at = CASE WHEN o.state IN ('pending', 'sending') THEN o.next_attempt_at ELSE p_now END,
			attempts = CASE WHEN o.state IN ('pending', 'sending') THEN o.attempts ELSE 0 END,
			failing_since = CASE WHEN o.state IN ('pending', 'sending') THEN o.failing_since END,
			last_error = CASE WHEN o.state IN ('pending', 'sending') THEN o.last_error END,
			last_status_at = p_now, reason = NULL, n = CASE WHEN o.state IN ('pending', 'sending') THEN o.n END
		RETURNING o.key)
	SELECT array_agg(s.key) INTO keys FROM sent s;
	PERFORM outbox_promote(d.name, keys, d.hold, p_now);
END $$;

-- As in settle.sql; new are the dead letters, and what arrived as one while it was in flight.
CREATE OR REPLACE FUNCTION outbox_settle_detours(last outbox_receipt, o outbox_outcomes, p_n bigint, p_owner text, p_hold boolean,
	p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	sending bigint[] := outbox_sending(last.target, last.lane);
	stop bigint := greatest(o.last_kept, (SELECT max(s) FROM unnest(sending) s));
	tail bigint;
	keys text[];
	failed bigint[];
BEGIN
	IF cardinality(sending) <> last.claim_detours OR EXISTS (
			SELECT FROM unnest(o.seqs) s WHERE s <> ALL (sending) AND (s <= last.pos OR s > last.claim_end)) THEN
		RAISE EXCEPTION 'target %, lane %: the outcomes given are not those of the % messages in flight',
			last.target, last.lane, last.claim_count USING ERRCODE = 'OB003';
	END IF;
	SELECT min(s) INTO tail FROM unnest(o.seqs, o.outcomes) u(s, outcome) WHERE outcome = 2 AND s > stop;

	WITH delivered AS (
		UPDATE outbox_detour SET
			state = CASE WHEN dead_n = last.n THEN 'pending' ELSE 'delivered' END,
			why = CASE WHEN dead_n = last.n THEN 'retry' END,
			next_attempt_at = CASE WHEN dead_n = last.n THEN p_now END,
			attempts = CASE WHEN dead_n = last.n THEN 0 ELSE attempts END,
			suspect = false, last_status_at = p_now, owner = p_owner, n = p_n
		WHERE target = last.target AND seq = ANY (sending) AND seq <> ALL (o.seqs)
		RETURNING key)
	SELECT array_agg(key) INTO keys FROM delivered;

	WITH u AS (
		SELECT * FROM unnest(o.seqs, o.outcomes, o.attempts, o.delays, o.dues, o.suspects, o.errors)
			AS u(seq, outcome, attempts, delay, due, suspect, error)
	), changed AS (
		UPDATE outbox_detour d SET
			state = CASE WHEN u.outcome = 6 THEN 'failed' ELSE 'pending' END,
			why = CASE u.outcome WHEN 2 THEN d.why WHEN 3 THEN 'retry' WHEN 4 THEN 'deferred' WHEN 5 THEN 'parked' END,
			attempts = CASE WHEN u.outcome = 2 THEN d.attempts ELSE u.attempts END,
			failing_since = CASE WHEN u.outcome <> 2 AND u.attempts > 0 THEN coalesce(d.failing_since, p_now)
				ELSE d.failing_since END,
			next_attempt_at = CASE u.outcome WHEN 2 THEN p_now WHEN 3 THEN p_now + u.delay * interval '1 microsecond'
				WHEN 4 THEN u.due END,
			suspect = CASE WHEN u.outcome = 2 THEN d.suspect ELSE u.suspect END,
			last_error = coalesce(u.error, d.last_error),
			last_status_at = p_now,
			owner = CASE WHEN u.outcome = 2 THEN d.owner ELSE p_owner END,
			n = CASE WHEN u.outcome = 2 THEN d.n ELSE p_n END
		FROM u
		WHERE d.target = last.target AND d.seq = u.seq AND d.seq = ANY (sending)
		RETURNING d.key, u.outcome
	), made AS (
		INSERT INTO outbox_detour AS d (target, seq, id, key, lane, state, why, attempts, next_attempt_at, failing_since,
			suspect, last_error, last_status_at, owner, n)
		SELECT last.target, m.seq, m.id, m.key, last.lane,
			CASE WHEN u.outcome = 6 THEN 'failed' ELSE 'pending' END,
			CASE u.outcome WHEN 2 THEN 'retry' WHEN 3 THEN 'retry' WHEN 4 THEN 'deferred' WHEN 5 THEN 'parked' END,
			CASE WHEN u.outcome = 2 THEN 0 ELSE u.attempts END,
			CASE u.outcome WHEN 2 THEN p_now WHEN 3 THEN p_now + u.delay * interval '1 microsecond' WHEN 4 THEN u.due END,
			CASE WHEN u.outcome <> 2 AND u.attempts > 0 THEN p_now END,
			u.outcome <> 2 AND u.suspect, CASE WHEN u.outcome <> 2 THEN u.error END, p_now, p_owner,
			CASE WHEN u.outcome <> 2 THEN p_n END
		FROM u JOIN outbox_message m ON m.seq = u.seq
		WHERE u.seq <> ALL (sending) AND (tail IS NULL OR u.seq < tail OR u.outcome <> 2)
		-- it arrived as a dead letter while its log row was in flight
		ON CONFLICT (target, seq) DO UPDATE SET state = excluded.state, why = excluded.why, attempts = excluded.attempts,
			next_attempt_at = excluded.next_attempt_at, failing_since = excluded.failing_since,
			suspect = excluded.suspect, last_error = excluded.last_error, last_status_at = excluded.last_status_at,
			owner = excluded.owner, n = excluded.n
		RETURNING key, CASE why WHEN 'parked' THEN 5 ELSE 0 END AS outcome
	)
	SELECT keys || array_agg(key) INTO keys FROM (
		SELECT key FROM changed WHERE outcome IN (4, 5, 6) UNION ALL SELECT key FROM made WHERE outcome = 5) k;

	IF keys IS NOT NULL THEN
		PERFORM outbox_promote(last.target, keys, p_hold, p_now);
	END IF;
	IF 6 = ANY (o.outcomes) THEN
		failed := ARRAY(SELECT u.seq FROM unnest(o.seqs, o.outcomes) u(seq, outcome) WHERE u.outcome = 6);
		PERFORM outbox_dead_letters(last, failed, p_now);
	END IF;
	RETURN tail;
END $$;

-- As in advance.sql; a row of the log that became a dead letter while in flight is still in this claim.
CREATE OR REPLACE FUNCTION outbox_claim_again(last outbox_receipt, v outbox_view, p_now timestamptz) RETURNS SETOF outbox_claimed
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	seqs bigint[];
	flags integer[];
BEGIN
	SELECT array_agg(i.seq ORDER BY i.seq), array_agg(i.flags ORDER BY i.seq) INTO seqs, flags FROM (
		SELECT d.seq, 1 AS flags FROM outbox_detour d
		WHERE d.target = last.target AND d.lane = last.lane AND d.state = 'sending'
		UNION ALL
		SELECT w.seq, CASE WHEN w.key IS NOT NULL AND NOT v.unordered AND v.detours
			AND outbox_is_blocked(last.target, w.key, w.seq, v.hold, '{}', p_now) THEN 4 ELSE 0 END
		FROM outbox_window(greatest(last.pos, last.floor), last.prev, last.prev_seq,
			outbox_late(last.prev, last.prev_xid, last.cur), last.cur, least(last.cur_seq, last.claim_end), last.lane, v.lanes,
			v.types, v.kind, v.published_only, 9223372036854775807, 9223372036854775807) w
		WHERE w.seq <= last.claim_end
			AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = last.target AND d.seq = w.seq
				AND NOT (coalesce(d.dead_n = last.n, false) AND d.state = 'pending'))
	) i;
	RETURN QUERY SELECT * FROM outbox_read_claim(last.target, coalesce(seqs, '{}'), flags);
END $$;

-- As in claim.sql; 8: outbox_dead() says more about it.
CREATE OR REPLACE FUNCTION outbox_read_claim(p_target text, p_seqs bigint[], p_flags integer[]) RETURNS SETOF outbox_claimed
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT NULL::bigint[], u.seq, coalesce(m.id, d.id), m.type, coalesce(m.key, d.key), m.kind, m.published,
		m.created_at, m.event_time, m.due_at, m.expires_at, m.priority, m.content_type, m.source, m.subject,
		m.topic, m.correlation_id, m.causation_id, m.traceparent, m.headers,
		CASE WHEN u.flags & 4 = 0 THEN m.payload END, CASE WHEN u.flags & 4 = 0 THEN m.payload_bin END,
		coalesce(d.attempts, 0), d.failing_since,
		u.flags + CASE WHEN d.suspect THEN 2 ELSE 0 END + CASE WHEN d.dead_target IS NOT NULL THEN 8 ELSE 0 END
	FROM unnest(p_seqs, p_flags) WITH ORDINALITY AS u(seq, flags, i)
	LEFT JOIN LATERAL (SELECT * FROM outbox_message l WHERE l.seq = u.seq
		UNION ALL SELECT * FROM outbox_kept k WHERE k.seq = u.seq LIMIT 1) m ON true
	LEFT JOIN outbox_detour d ON u.flags & 1 = 1 AND d.target = p_target AND d.seq = u.seq
	ORDER BY u.i
$$;

-- Where these failed before, in seq order.
CREATE FUNCTION outbox_dead(p_target text, p_seqs bigint[])
RETURNS TABLE (seq bigint, dead_target text, dead_reason text, dead_attempts integer, dead_at timestamptz)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT d.seq, d.dead_target, d.dead_reason, d.dead_attempts, d.dead_at FROM outbox_detour d
	WHERE d.target = p_target AND d.seq = ANY (p_seqs) AND d.dead_target IS NOT NULL ORDER BY d.seq
$$;

-- ---- targets ----------------------------------------------------------------------------------------------

-- The dead letter of a target that is registered; NULL: none. Its lanes are locked, if there is something to do.
CREATE FUNCTION outbox_target_dead(p_target text, p_dead text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	link text := p_dead;
	steps text := p_target;
BEGIN
	IF NOT EXISTS (SELECT FROM outbox_target WHERE name = p_target AND dead_letter IS DISTINCT FROM p_dead) THEN
		RETURN;
	END IF;
	-- one at a time: two that make one half of a loop each
	PERFORM pg_advisory_xact_lock(outbox_lane_lock('dead letters', -3));
	WHILE link IS NOT NULL LOOP
		steps := steps || ' -> ' || link;
		IF link = p_target THEN
			RAISE EXCEPTION 'dead_letter: % is a loop; a dead letter must end somewhere', steps USING ERRCODE = 'OB006';
		ELSIF NOT EXISTS (SELECT FROM outbox_target WHERE name = link) THEN
			RAISE EXCEPTION 'dead_letter: no target "%" is registered here; register it first', link USING ERRCODE = 'OB006';
		END IF;
		SELECT dead_letter INTO link FROM outbox_target WHERE name = link;
	END LOOP;
	PERFORM outbox_lock_lanes(p_target);
	UPDATE outbox_target SET dead_letter = p_dead WHERE name = p_target;
END $$;

-- Where a new target that starts at a time begins: everything up to this message is not for it. NULL: no message
-- is that young.
CREATE FUNCTION outbox_start_floor(p_time timestamptz) RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT seq - 1 FROM outbox_message WHERE created_at >= p_time ORDER BY seq LIMIT 1
$$;

-- As in target.sql; a target that starts at a time stands in the middle of a window when it begins.
CREATE OR REPLACE FUNCTION outbox_has_settled(p_target text) RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT EXISTS (SELECT FROM outbox_target t JOIN outbox_lane l ON l.target = t.name
		CROSS JOIN LATERAL (SELECT r.prev, r.pos FROM outbox_receipt r
			WHERE r.target = l.target AND r.lane = l.lane ORDER BY r.n DESC LIMIT 1) last
		WHERE (p_target IS NULL OR t.name = p_target)
			AND (last.prev::text <> t.start::text OR last.pos > coalesce((SELECT f.pos FROM outbox_receipt f
				WHERE f.target = l.target AND f.lane = l.lane AND f.n = 1), 0)))
$$;

-- As in purge.sql; a band that was added later has a floor.
CREATE OR REPLACE FUNCTION outbox_highest(p outbox_receipt) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT greatest((p).prev_seq, (p).pos, (p).floor) $$;

-- As outbox_target_put() of version 1, with a dead letter, and p_start 3: at p_start_at.
CREATE FUNCTION outbox_target_put(p_target text, p_route text, p_globs text[], p_kind text, p_published_only boolean,
	p_hold boolean, p_unordered boolean, p_start integer, p_token bigint, p_now timestamptz, p_start_at timestamptz,
	p_dead text) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	floor_seq bigint;
	version bigint;
	fresh pg_snapshot;
	fresh_seq bigint;
	fresh_xid xid8;
	at_time boolean := p_start = 3;
	is_new boolean := NOT EXISTS (SELECT FROM outbox_target WHERE name = p_target);
BEGIN
	IF is_new AND at_time THEN
		IF p_start_at > outbox_now(p_now) THEN
			RAISE EXCEPTION 'start: % lies ahead; a target can start at a time that is past, at oldest or now',
				to_char(p_start_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') USING ERRCODE = 'OB006';
		END IF;
		-- A purge that is under way must not take away what is found here.
		PERFORM outbox_janitor_lock(true);
		-- In this order, before anything is written: see outbox_receipt.
		fresh := pg_current_snapshot();
		fresh_seq := outbox_log_end();
		fresh_xid := pg_current_xact_id();
		floor_seq := outbox_start_floor(p_start_at);
	END IF;
	version := outbox_target_put(p_target, p_route, p_globs, p_kind, p_published_only, p_hold, p_unordered,
		CASE WHEN at_time THEN 1 ELSE p_start END, p_token, p_now);
	-- It has read what is visible now, up to there. What is not committed yet may be from after the time: it follows.
	IF is_new AND at_time THEN
		UPDATE outbox_receipt r SET cur = fresh, cur_seq = fresh_seq, cur_xid = fresh_xid,
			pos = coalesce(floor_seq, fresh_seq), claim_end = coalesce(floor_seq, fresh_seq)
			WHERE r.target = p_target AND r.token = p_token AND r.n = 1 AND r.claim_count = 0;
	END IF;
	PERFORM outbox_target_dead(p_target, p_dead);
	RETURN version;
END $$;

CREATE OR REPLACE FUNCTION outbox_target_drop(p_target text, p_actor text, p_reason text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	whose text;
BEGIN
	PERFORM pg_advisory_xact_lock(outbox_lane_lock(p_target, -2));
	PERFORM pg_advisory_xact_lock(outbox_lane_lock(p_target, -1));
	PERFORM pg_advisory_xact_lock(outbox_lane_lock('dead letters', -3));
	SELECT name INTO whose FROM outbox_target WHERE dead_letter = p_target ORDER BY name LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'target "%" is the dead letter of "%"; take that away first, or drop "%"', p_target, whose, whose
			USING ERRCODE = 'OB002';
	END IF;
	PERFORM outbox_lock_lanes(p_target);
	IF NOT EXISTS (SELECT FROM outbox_target WHERE name = p_target) THEN
		PERFORM outbox_no_target(p_target);
	END IF;
	IF outbox_has_settled(p_target) THEN
		INSERT INTO outbox_meta (name, value) VALUES ('settled', '1') ON CONFLICT (name) DO NOTHING;
	END IF;
	DELETE FROM outbox_detour WHERE target = p_target;
	DELETE FROM outbox_receipt WHERE target = p_target;
	DELETE FROM outbox_lane WHERE target = p_target;
	DELETE FROM outbox_worker WHERE target = p_target;
	-- the newest version stays: its number must never be used again
	DELETE FROM outbox_route r WHERE r.target = p_target
		AND r.version < (SELECT max(version) FROM outbox_route WHERE target = p_target);
	DELETE FROM outbox_target WHERE name = p_target;
	INSERT INTO outbox_audit (at, actor, action, target, reason)
		VALUES (outbox_now(p_now), p_actor, 'drop target', p_target, p_reason);
END $$;
