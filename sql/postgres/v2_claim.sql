-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL, version 2: choosing a claim among a million detours, whatever the statistics say.
--
-- Statistics are of the past: when a million failed deliveries are requeued, the planner knows of no pending ones,
-- takes any index that leads to those for as good as any other, and walks through all of them for each key. So every
-- question that a claim asks of the detours is put in the words of the one index that answers it: rows are compared
-- with the columns of that index, and asked for in its order, which no other index has; sorting is switched off.

-- Those that an operator wrote ahead of a lane: among all that wait they were found by looking at each.
CREATE INDEX outbox_detour_ahead ON outbox_detour (target, lane, seq) WHERE ahead;

-- As in advance.sql.
CREATE OR REPLACE FUNCTION outbox_lane_view(p_target text, p_lane integer, p_version bigint) RETURNS outbox_view
LANGUAGE plpgsql STABLE AS $$
DECLARE
	v outbox_view;
BEGIN
	SELECT t.version, t.paused, t.hold, t.unordered,
		(SELECT value::integer FROM outbox_meta WHERE name = 'lanes'),
		r.types, r.kind, coalesce(r.published_only, false),
		(SELECT d.seq FROM outbox_detour d WHERE d.target = p_target
			AND (d.lane, d.seq) >= (p_lane, 0) AND (d.lane, d.seq) <= (p_lane, 9223372036854775807)
			AND (d.state IN ('pending', 'sending') OR d.ahead) ORDER BY d.lane, d.seq LIMIT 1) IS NOT NULL
		OR (t.hold AND (SELECT d.seq FROM outbox_detour d WHERE d.target = p_target
			AND (d.state, d.seq) >= ('failed', 0) AND (d.state, d.seq) <= ('failed', 9223372036854775807)
			ORDER BY d.state, d.seq LIMIT 1) IS NOT NULL)
	INTO v
	FROM outbox_target t LEFT JOIN outbox_route r ON r.target = t.name AND r.version = p_version
	WHERE t.name = p_target;
	IF NOT FOUND THEN
		PERFORM outbox_no_target(p_target);
	END IF;
	RETURN v;
END $$;

-- What is in flight, ascending.
CREATE FUNCTION outbox_sending(p_target text, p_lane integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET enable_sort = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
BEGIN
	RETURN ARRAY(SELECT d.seq FROM outbox_detour d WHERE d.target = p_target
		AND (d.state, d.seq) >= ('sending', 0) AND (d.state, d.seq) <= ('sending', 9223372036854775807)
		AND d.lane = p_lane ORDER BY d.state, d.seq);
END $$;

-- As in claim.sql: does something before it in its key hold a delivery back, other than the picks?
CREATE OR REPLACE FUNCTION outbox_is_blocked(p_target text, p_key text, p_seq bigint, p_hold boolean, p_picks bigint[],
	p_now timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
	SELECT (SELECT b.seq FROM outbox_detour b
		WHERE b.target = p_target AND b.key IS NOT NULL AND (b.key, b.seq) >= (p_key, 0) AND (b.key, b.seq) < (p_key, p_seq)
			AND b.state IN ('pending', 'failed')
			AND ((b.state = 'pending' AND NOT (b.why = 'deferred' AND b.next_attempt_at > p_now))
				OR (p_hold AND b.state = 'failed'))
			AND b.seq <> ALL (p_picks)
		ORDER BY b.key, b.seq LIMIT 1) IS NOT NULL
$$;

-- As in claim.sql. p_look: of how many that are due.
CREATE FUNCTION outbox_due(p_target text, p_lane integer, p_hold boolean, p_unordered boolean, p_cur pg_snapshot,
	p_now timestamptz, p_max bigint, p_look bigint) RETURNS TABLE (seq bigint, key text, suspect boolean)
LANGUAGE sql STABLE ROWS 10 AS $$
	SELECT d.seq, CASE WHEN NOT p_unordered THEN d.key END, d.suspect
	FROM (SELECT o.seq, o.key, o.suspect, o.ahead, o.next_attempt_at FROM outbox_detour o
		WHERE o.target = p_target AND o.lane = p_lane AND o.state = 'pending'
			AND o.next_attempt_at IS NOT NULL AND o.next_attempt_at <= p_now
		ORDER BY o.next_attempt_at, o.seq LIMIT p_look) d
	WHERE (p_unordered OR d.key IS NULL OR (SELECT b.seq FROM outbox_detour b
			WHERE b.target = p_target AND b.key IS NOT NULL AND (b.key, b.seq) >= (d.key, 0) AND (b.key, b.seq) < (d.key, d.seq)
				AND b.state IN ('pending', 'failed')
				AND ((b.state = 'pending' AND NOT (b.why = 'deferred' AND b.next_attempt_at > p_now))
					OR (p_hold AND b.state = 'failed'))
			ORDER BY b.key, b.seq LIMIT 1) IS NULL)
		AND (NOT d.ahead OR EXISTS (SELECT FROM outbox_message m
			WHERE m.seq = d.seq AND pg_visible_in_snapshot(m.xid, p_cur)))
	LIMIT p_max
$$;

CREATE OR REPLACE FUNCTION outbox_due(p_target text, p_lane integer, p_hold boolean, p_unordered boolean, p_cur pg_snapshot,
	p_now timestamptz, p_max bigint) RETURNS TABLE (seq bigint, key text, suspect boolean)
LANGUAGE sql STABLE ROWS 10 AS $$
	SELECT d.seq, d.key, d.suspect FROM outbox_due(p_target, p_lane, p_hold, p_unordered, p_cur, p_now, p_max,
		9223372036854775807) d
$$;

-- The run behind one that is due, itself first, up to the first that is neither due nor parked.
CREATE FUNCTION outbox_run(p_target text, p_key text, p_seq bigint, p_suspect boolean, p_hold boolean, p_cur pg_snapshot,
	p_now timestamptz, p_max bigint) RETURNS TABLE (seq bigint, suspect boolean)
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
			ORDER BY o.key, o.seq LIMIT p_max) d) r
	WHERE NOT r.stopped
$$;

-- As in claim.sql, at most p_max. Few keys may have a million that are due, and only the first of each can go: so
-- some are looked at and the runs behind them end the search once they are enough; a key gets a part of the claim,
-- unless there are too few keys to fill it. All that are due are looked at only where most of the first ones wait
-- behind something.
CREATE OR REPLACE FUNCTION outbox_picks(p_target text, p_lane integer, p_hold boolean, p_unordered boolean, p_cur pg_snapshot,
	p_now timestamptz, p_max bigint) RETURNS TABLE (seq bigint, suspect boolean)
LANGUAGE plpgsql STABLE ROWS 10 AS $$
DECLARE
	look bigint := 4 * p_max;
	run bigint := p_max / 16;
	seqs bigint[];
	suspects boolean[];
BEGIN
	LOOP
		SELECT array_agg(p.seq), array_agg(p.suspect) INTO seqs, suspects FROM (
			SELECT r.seq, r.suspect FROM outbox_due(p_target, p_lane, p_hold, p_unordered, p_cur, p_now, p_max, look) h
			CROSS JOIN LATERAL outbox_run(p_target, h.key, h.seq, h.suspect, p_hold, p_cur, p_now, run) r
			LIMIT p_max) p;
		EXIT WHEN cardinality(seqs) >= p_max OR look > 4 * p_max;
		IF run < p_max AND seqs IS NOT NULL AND NOT p_unordered THEN
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

-- As in advance.sql, by the index of those.
CREATE OR REPLACE FUNCTION outbox_pass_ahead(p outbox_receipt) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	passed bigint[];
BEGIN
	passed := ARRAY(SELECT a.seq FROM (SELECT o.seq FROM outbox_detour o
			WHERE o.target = p.target AND o.lane = p.lane AND o.ahead ORDER BY o.seq) a
		JOIN outbox_message m ON m.seq = a.seq WHERE outbox_is_settled(m.xid, m.seq, p) LIMIT 2000);
	IF cardinality(passed) > 0 THEN
		UPDATE outbox_detour d SET ahead = false WHERE d.target = p.target AND d.seq = ANY (passed);
	END IF;
END $$;
