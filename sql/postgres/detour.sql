-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: the detours of a lane: which are due, and what they hold back.
--
-- What waits for what: a detour blocks later messages of its key while it is pending, unless it is
-- deferred and not due yet, and forever if it failed and the target has hold. Of each key the first
-- that is due can be picked, and the run of due or parked ones behind it comes along, up to the first
-- that is neither. Picks and new log rows are merged by seq and cut by count, by bytes, and at a suspect,
-- which is sent alone.
--
-- Queries must not depend on statistics, which may be outdated. When a million failed deliveries are requeued, the
-- planner expects no pending ones, considers every index on them equally good, and reads all of them for each key. So
-- every query of a claim on the detours is written for the one index that answers it: rows are compared with the columns
-- of that index and requested in its order, which no other index has; sorting is switched off.

-- Where these detours are, locked, so that an update finds them there. An update by (target, seq) would be planned while
-- the table is small, with any index that begins with the target, and then read all detours of the target for ever.
CREATE OR REPLACE FUNCTION outbox_detours_at(p_target text, p_seqs bigint[]) RETURNS tid[]
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	RETURN ARRAY(SELECT o.ctid FROM unnest(p_seqs) u(seq) CROSS JOIN LATERAL (
		SELECT d.ctid FROM outbox_detour d
		WHERE (d.target, d.seq) >= (p_target, u.seq) AND (d.target, d.seq) <= (p_target, u.seq)
		ORDER BY d.target, d.seq LIMIT 1 FOR UPDATE) o);
END $$;

-- When the lane's next waiting or deferred delivery is due. (plpgsql keeps the plan.)
CREATE OR REPLACE FUNCTION outbox_next_due(p_target text, p_lane integer, p_now timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT d.next_attempt_at FROM outbox_detour d
		WHERE d.target = p_target AND d.lane = p_lane AND d.state = 'pending' AND d.next_attempt_at IS NOT NULL
			AND d.next_attempt_at > p_now
		ORDER BY d.target, d.lane, d.next_attempt_at LIMIT 1);
END $$;

-- The first delivery before this one in its key that holds it back, other than the picks; nothing without a key. Inlined:
-- no SET, not volatile.
CREATE OR REPLACE FUNCTION outbox_blocker(p_target text, p_key text, p_seq bigint, p_hold boolean, p_picks bigint[],
	p_now timestamptz) RETURNS TABLE (seq bigint)
LANGUAGE sql STABLE ROWS 1 AS $$
	SELECT b.seq FROM outbox_detour b
	WHERE b.target = p_target AND b.key IS NOT NULL AND (b.key, b.seq) >= (p_key, 0) AND (b.key, b.seq) < (p_key, p_seq)
		AND b.state IN ('pending', 'failed')
		AND ((b.state = 'pending' AND NOT (b.why = 'deferred' AND b.next_attempt_at > p_now))
			OR (p_hold AND b.state = 'failed'))
		AND b.seq <> ALL (p_picks)
	ORDER BY b.key, b.seq LIMIT 1
$$;

-- Keys in which something waits, of which a lane's next messages may be blocked; NULL: there are many. A sieve: whether one is
-- blocked, outbox_blocker() says. Whatever blocks a key has one in line that has a time and will wake it, or it failed.
CREATE OR REPLACE FUNCTION outbox_waiting_keys(p_target text, p_lane integer, p_hold boolean, p_max bigint) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
	keys text[];
BEGIN
	keys := ARRAY(SELECT d.key FROM outbox_detour d
		WHERE d.target = p_target AND d.lane = p_lane AND d.state = 'pending' AND d.next_attempt_at IS NOT NULL
		ORDER BY d.target, d.lane, d.next_attempt_at LIMIT p_max + 1);
	IF p_hold AND cardinality(keys) <= p_max THEN
		keys := keys || ARRAY(SELECT d.key FROM outbox_detour d WHERE d.target = p_target
			AND (d.state, d.seq) >= ('failed', 0) AND (d.state, d.seq) <= ('failed', 9223372036854775807)
			ORDER BY d.state, d.seq LIMIT p_max + 1);
	END IF;
	RETURN CASE WHEN cardinality(keys) <= p_max THEN keys END;
END $$;

-- Due, and nothing before it in its key holds it back; p_look: how many due ones to examine. Those with ahead wait until
-- their lane's window contains them.
CREATE OR REPLACE FUNCTION outbox_due(p_target text, p_lane integer, p_hold boolean, p_unordered boolean, p_cur pg_snapshot,
	p_now timestamptz, p_max bigint, p_look bigint) RETURNS TABLE (seq bigint, key text, suspect boolean)
LANGUAGE sql STABLE ROWS 10 AS $$
	SELECT d.seq, CASE WHEN NOT p_unordered THEN d.key END, d.suspect
	FROM (SELECT o.seq, o.key, o.suspect, o.ahead, o.next_attempt_at FROM outbox_detour o
		WHERE o.target = p_target AND o.lane = p_lane AND o.state = 'pending'
			AND o.next_attempt_at IS NOT NULL AND o.next_attempt_at <= p_now
		ORDER BY o.next_attempt_at, o.seq LIMIT p_look) d
	WHERE (p_unordered OR d.key IS NULL OR (SELECT b.seq FROM outbox_blocker(p_target, d.key, d.seq, p_hold, '{}', p_now) b) IS NULL)
		AND (NOT d.ahead OR EXISTS (SELECT FROM outbox_message m
			WHERE m.seq = d.seq AND pg_visible_in_snapshot(m.xid, p_cur)))
	LIMIT p_max
$$;

-- So many parked ones come along with the first of their key, whatever became of it. A test that compares stores message by
-- message sets outbox.run_min.
CREATE OR REPLACE FUNCTION outbox_run_min() RETURNS bigint LANGUAGE sql STABLE AS $$
	SELECT coalesce(nullif(current_setting('outbox.run_min', true), '')::bigint, 3)
$$;

-- A due one and the run after it, up to the first that is neither due nor parked. p_parked: how far, if what follows is parked.
CREATE OR REPLACE FUNCTION outbox_run(p_target text, p_key text, p_seq bigint, p_suspect boolean, p_hold boolean, p_cur pg_snapshot,
	p_now timestamptz, p_max bigint, p_parked bigint) RETURNS TABLE (seq bigint, suspect boolean)
LANGUAGE sql STABLE ROWS 10 AS $$
	SELECT p_seq, p_suspect
	UNION ALL
	-- no further than needed: the search for what ends a run must not read all of a key
	SELECT r.seq, r.suspect FROM (
		SELECT d.seq, d.suspect, bool_or(d.stops) OVER (ORDER BY d.key, d.seq ROWS UNBOUNDED PRECEDING) AS stopped
		FROM (SELECT o.key, o.seq, o.suspect,
				o.state = 'failed' OR coalesce(o.why = 'retry' AND o.next_attempt_at > p_now, false) AS stops
			FROM outbox_detour o
			WHERE o.target = p_target AND o.key IS NOT NULL AND (o.key, o.seq) > (p_key, p_seq)
				AND (o.key, o.seq) <= (p_key, 9223372036854775807) AND o.state IN ('pending', 'failed')
				AND (p_hold OR o.state <> 'failed')
				AND NOT coalesce(o.state = 'pending' AND o.why = 'deferred' AND o.next_attempt_at > p_now, false)
				AND (NOT o.ahead OR o.state = 'failed' OR (o.why = 'retry' AND o.next_attempt_at > p_now)
					OR EXISTS (SELECT FROM outbox_message m
						WHERE m.seq = o.seq AND pg_visible_in_snapshot(m.xid, p_cur)))
			ORDER BY o.key, o.seq LIMIT CASE WHEN p_parked < p_max AND (SELECT f.next_attempt_at FROM outbox_detour f
				WHERE f.target = p_target AND f.key IS NOT NULL AND (f.key, f.seq) > (p_key, p_seq)
					AND (f.key, f.seq) <= (p_key, 9223372036854775807) AND f.state IN ('pending', 'failed')
				ORDER BY f.key, f.seq LIMIT 1) IS NULL THEN p_parked ELSE p_max END) d) r
	WHERE NOT r.stopped
$$;

-- The due ones and the run after each, at most p_max. A few keys may have a million due ones, and only the first of each
-- can be sent: so some are examined, and the search ends when their runs are enough. A key gets a part of the claim,
-- unless there are too few keys to fill it. All due ones are examined only if most of the first ones wait for something.
--
-- Parked ones are put back one by one if their first is refused again, and every retry would do so with all of them: so few
-- of them come along, and twice as many as receipt p_n has delivered of the key.
CREATE OR REPLACE FUNCTION outbox_picks(p_target text, p_lane integer, p_hold boolean, p_unordered boolean, p_cur pg_snapshot,
	p_now timestamptz, p_max bigint, p_n bigint DEFAULT 0) RETURNS TABLE (seq bigint, suspect boolean)
LANGUAGE plpgsql STABLE ROWS 10 AS $$
DECLARE
	look bigint := 4 * p_max;
	run bigint := p_max / 16;
	seqs bigint[];
	suspects boolean[];
	heads bigint[];
	least_run bigint := outbox_run_min();
	delivered jsonb; -- how many, by key
BEGIN
	IF (SELECT o.seq FROM outbox_detour o WHERE o.target = p_target AND o.lane = p_lane AND o.state = 'pending'
			AND o.next_attempt_at IS NOT NULL AND o.next_attempt_at <= p_now
			ORDER BY o.target, o.lane, o.next_attempt_at LIMIT 1) IS NULL THEN
		RETURN;
	END IF;
	SELECT jsonb_object_agg(k.key, k.count) INTO delivered FROM (SELECT o.key, count(*) AS count
		FROM (SELECT d.key, d.state FROM outbox_detour d WHERE d.target = p_target
			AND (d.lane, d.n, d.seq) >= (p_lane, p_n, 0) AND (d.lane, d.n, d.seq) <= (p_lane, p_n, 9223372036854775807)
			ORDER BY d.target, d.lane, d.n, d.seq) o
		WHERE o.state = 'delivered' AND o.key IS NOT NULL GROUP BY o.key HAVING 2 * count(*) > least_run) k;
	LOOP
		SELECT array_agg(p.seq), array_agg(p.suspect), array_agg(p.head) INTO seqs, suspects, heads FROM (
			SELECT r.seq, r.suspect, h.seq AS head
			FROM outbox_due(p_target, p_lane, p_hold, p_unordered, p_cur, p_now, p_max, look) h
			CROSS JOIN LATERAL outbox_run(p_target, h.key, h.seq, h.suspect, p_hold, p_cur, p_now, run,
				greatest(least_run, 2 * (delivered->>h.key)::bigint)) r
			LIMIT p_max) p;
		EXIT WHEN cardinality(seqs) >= p_max OR look > 4 * p_max;
		IF run < p_max AND NOT p_unordered
				AND (SELECT max(c.count) FROM (SELECT count(*) FROM unnest(heads) h GROUP BY h) c) > run THEN
			run := p_max;
		ELSIF (SELECT o.seq FROM outbox_detour o
				WHERE o.target = p_target AND o.lane = p_lane AND o.state = 'pending'
					AND o.next_attempt_at IS NOT NULL AND o.next_attempt_at <= p_now
				ORDER BY o.next_attempt_at, o.seq OFFSET look LIMIT 1) IS NOT NULL THEN
			run := p_max;
			look := 9223372036854775807;
		ELSE
			EXIT;
		END IF;
	END LOOP;
	RETURN QUERY SELECT u.seq, u.suspect FROM unnest(seqs, suspects) u(seq, suspect) ORDER BY u.seq;
END $$;
