-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: choosing and reading a claim when there are detours.
--
-- Who waits behind whom: a detour blocks what is behind it in its key while it is pending, unless it is
-- deferred and not due yet, and for ever when it failed and the target says hold. Of each key the first
-- that is due can be picked, and the run of due or parked ones behind it comes along, up to the first
-- that is neither. Picks and new log rows are merged by seq and cut by count, by bytes, and at a suspect,
-- which travels alone.

-- One message of a claim as the program reads it. The last row of an answer has only the head:
-- n, token, now, paused, stale route, cautious, next due time (times in microseconds since 1970), how many were read ahead.
CREATE TYPE outbox_claimed AS (
	head bigint[],
	seq bigint,
	id text,
	type text,
	key text,
	kind text,
	published boolean,
	created_at timestamptz,
	event_time timestamptz,
	due_at timestamptz,
	expires_at timestamptz,
	priority smallint,
	content_type text,
	source text,
	subject text,
	topic text,
	correlation_id text,
	causation_id text,
	traceparent text,
	headers text,
	payload text,
	payload_bin bytea,
	attempts integer,
	failing_since timestamptz,
	flags integer -- 1 detour, 2 suspect, 4 blocked: its payload is not loaded
);

CREATE FUNCTION outbox_micros(t timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT (extract(epoch FROM t) * 1000000)::bigint $$;

CREATE FUNCTION outbox_claim_head(p outbox_receipt, now timestamptz, paused boolean, stale boolean, next_due timestamptz,
	ahead bigint DEFAULT 0) RETURNS outbox_claimed
LANGUAGE plpgsql STABLE AS $$
DECLARE
	c outbox_claimed;
BEGIN
	c.head := ARRAY[p.n, p.token, outbox_micros(now), paused::integer, stale::integer,
		outbox_is_cautious(p)::integer, coalesce(outbox_micros(next_due), 0), ahead];
	RETURN c;
END $$;

-- When the lane's next waiting or deferred delivery is due.
CREATE FUNCTION outbox_next_due(p_target text, p_lane integer, p_now timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
	SELECT next_attempt_at FROM outbox_detour
	WHERE target = p_target AND lane = p_lane AND state = 'pending' AND next_attempt_at IS NOT NULL
		AND next_attempt_at > p_now
	ORDER BY next_attempt_at LIMIT 1
$$;

-- Due, and nothing before it in its key holds it back. ahead ones wait until their lane's window has them.
CREATE FUNCTION outbox_due(p_target text, p_lane integer, p_hold boolean, p_unordered boolean, p_cur pg_snapshot,
	p_now timestamptz, p_max bigint) RETURNS TABLE (seq bigint, key text, suspect boolean)
LANGUAGE sql STABLE ROWS 10 AS $$
	SELECT d.seq, CASE WHEN NOT p_unordered THEN d.key END, d.suspect FROM outbox_detour d
	WHERE d.target = p_target AND d.lane = p_lane AND d.state = 'pending'
		AND d.next_attempt_at IS NOT NULL AND d.next_attempt_at <= p_now
		AND (p_unordered OR d.key IS NULL OR NOT EXISTS (SELECT FROM outbox_detour b
			WHERE b.target = p_target AND b.key = d.key AND b.seq < d.seq
				AND ((b.state = 'pending' AND NOT (b.why = 'deferred' AND b.next_attempt_at > p_now))
					OR (p_hold AND b.state = 'failed'))))
		AND (NOT d.ahead OR EXISTS (SELECT FROM outbox_message m
			WHERE m.seq = d.seq AND pg_visible_in_snapshot(m.xid, p_cur)))
	ORDER BY d.next_attempt_at, d.seq LIMIT p_max
$$;

-- The due ones and the run behind each, up to the first that is neither due nor parked: at most p_max, the first
-- ones of the log.
CREATE FUNCTION outbox_picks(p_target text, p_lane integer, p_hold boolean, p_unordered boolean, p_cur pg_snapshot,
	p_now timestamptz, p_max bigint) RETURNS TABLE (seq bigint, suspect boolean)
LANGUAGE sql STABLE ROWS 10 AS $$
	WITH heads AS MATERIALIZED (
		SELECT * FROM outbox_due(p_target, p_lane, p_hold, p_unordered, p_cur, p_now, p_max))
	SELECT u.seq, u.suspect FROM (
		SELECT h.seq, h.suspect FROM heads h
		UNION ALL
		SELECT r.seq, r.suspect FROM heads h
		CROSS JOIN LATERAL (SELECT coalesce((SELECT s.seq FROM outbox_detour s
			WHERE s.target = p_target AND s.key = h.key AND s.seq > h.seq AND s.state IN ('pending', 'failed')
				AND ((s.state = 'pending' AND s.why = 'retry' AND s.next_attempt_at > p_now)
					OR (p_hold AND s.state = 'failed'))
			ORDER BY s.seq LIMIT 1), 9223372036854775807) AS seq) stop
		CROSS JOIN LATERAL (
			SELECT d.seq, d.suspect FROM outbox_detour d
			WHERE d.target = p_target AND d.key = h.key AND d.state = 'pending' AND d.seq > h.seq AND d.seq < stop.seq
				AND NOT (d.why = 'deferred' AND d.next_attempt_at > p_now)
				AND (NOT d.ahead OR EXISTS (SELECT FROM outbox_message m
					WHERE m.seq = d.seq AND pg_visible_in_snapshot(m.xid, p_cur)))
			ORDER BY d.seq LIMIT p_max) r
	) u ORDER BY u.seq LIMIT p_max
$$;

-- Does an unfinished detour of its key, other than the picks, hold a new row back?
CREATE FUNCTION outbox_is_blocked(p_target text, p_key text, p_seq bigint, p_hold boolean, p_picks bigint[],
	p_now timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
	SELECT EXISTS (SELECT FROM outbox_detour b
		WHERE b.target = p_target AND b.key = p_key AND b.seq < p_seq
			AND ((b.state = 'pending' AND NOT (b.why = 'deferred' AND b.next_attempt_at > p_now))
				OR (p_hold AND b.state = 'failed'))
			AND b.seq <> ALL (p_picks))
$$;

-- The messages of a claim, in seq order: which, and whether they are detours (1) or blocked (4).
CREATE FUNCTION outbox_read_claim(p_target text, p_seqs bigint[], p_flags integer[]) RETURNS SETOF outbox_claimed
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT NULL::bigint[], u.seq, coalesce(m.id, d.id), m.type, coalesce(m.key, d.key), m.kind, m.published,
		m.created_at, m.event_time, m.due_at, m.expires_at, m.priority, m.content_type, m.source, m.subject,
		m.topic, m.correlation_id, m.causation_id, m.traceparent, m.headers,
		CASE WHEN u.flags & 4 = 0 THEN m.payload END, CASE WHEN u.flags & 4 = 0 THEN m.payload_bin END,
		coalesce(d.attempts, 0), d.failing_since, u.flags + CASE WHEN d.suspect THEN 2 ELSE 0 END
	FROM unnest(p_seqs, p_flags) WITH ORDINALITY AS u(seq, flags, i)
	LEFT JOIN LATERAL (SELECT * FROM outbox_message l WHERE l.seq = u.seq
		UNION ALL SELECT * FROM outbox_kept k WHERE k.seq = u.seq LIMIT 1) m ON true
	LEFT JOIN outbox_detour d ON u.flags & 1 = 1 AND d.target = p_target AND d.seq = u.seq
	ORDER BY u.i
$$;
