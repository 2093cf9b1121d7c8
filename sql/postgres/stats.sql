-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: numbers for people and monitoring. Cheap however much was delivered before: only what is
-- after the positions is counted, and no further than p_cap; totals come from the last receipts.
-- Detours are queried as in claim.sql, without relying on statistics: with those, all detours of a target were read to
-- count the few that failed.

-- The totals of a lane before a time: by binary search, because receipts are in the order of their times.
CREATE OR REPLACE FUNCTION outbox_totals_before(p_last outbox_receipt, p_time timestamptz, OUT delivered bigint, OUT retried bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
	r outbox_receipt;
	first bigint := (SELECT min(n) FROM outbox_receipt WHERE target = p_last.target AND lane = p_last.lane);
	low bigint := first;
	high bigint := p_last.n + 1;
	middle bigint;
BEGIN
	-- everything below low is older, everything from high on is not
	WHILE low < high LOOP
		middle := low + (high - low) / 2;
		IF (SELECT o.settled_at < p_time FROM outbox_receipt o
				WHERE o.target = p_last.target AND o.lane = p_last.lane AND o.n = middle) THEN
			low := middle + 1;
		ELSE
			high := middle;
		END IF;
	END LOOP;
	SELECT * INTO r FROM outbox_receipt o
		WHERE o.target = p_last.target AND o.lane = p_last.lane AND o.n = greatest(low - 1, first);
	delivered := r.delivered_total - CASE WHEN low = first THEN r.delivered ELSE 0 END;
	retried := r.retried_total - CASE WHEN low = first THEN r.retried ELSE 0 END;
END $$;

-- What is not read yet, and since when the oldest unsettled one could be sent; what is due later could not.
CREATE OR REPLACE FUNCTION outbox_count_unsettled(t outbox_target, p_cap bigint, p_now timestamptz, OUT pending bigint,
	OUT oldest timestamptz)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	v outbox_reading := outbox_reading_of(t);
	sending bigint := (SELECT sum(l.claim_count) FROM unnest(v.last) l);
BEGIN
	SELECT least(count(*) FILTER (WHERE NOT n.claimed), p_cap), 
		min(greatest(n.created_at, n.due_at)) FILTER (WHERE n.due_at IS NULL OR n.due_at <= p_now) INTO pending, oldest FROM (
		SELECT u.claimed, u.created_at, u.due_at FROM outbox_open_late(v, 0) u
		UNION ALL
		SELECT u.claimed, u.created_at, u.due_at FROM outbox_open(v, 0, 9223372036854775807) u
		LIMIT p_cap + sending) n;
END $$;


CREATE OR REPLACE FUNCTION outbox_count_state(p_target text, p_state text, p_cap bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
	RETURN (SELECT count(*) FROM (SELECT FROM outbox_detour d WHERE d.target = p_target
		AND (d.state, d.seq) >= (p_state, 0) AND (d.state, d.seq) <= (p_state, 9223372036854775807)
		ORDER BY d.state, d.seq LIMIT p_cap) n);
END $$;

CREATE OR REPLACE FUNCTION outbox_count_detours(p_target text, p_cap bigint, INOUT s outbox_numbers)
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
	first bigint;
BEGIN
	SELECT least(count(*) FILTER (WHERE why = 'retry'), p_cap), least(count(*) FILTER (WHERE why = 'deferred'), p_cap),
		least(count(*) FILTER (WHERE why = 'parked'), p_cap) INTO s.waiting, s.deferred, s.parked
		FROM (SELECT d.why FROM outbox_detour d WHERE d.target = p_target
			AND (d.state, d.seq) >= ('pending', 0) AND (d.state, d.seq) <= ('pending', 9223372036854775807)
			ORDER BY d.state, d.seq LIMIT 1000000) n;
	s.failed := outbox_count_state(p_target, 'failed', p_cap);
	s.discarded := outbox_count_state(p_target, 'discarded', p_cap);
	-- Both by the index of ready_at: NULL means since the commit, and then the first is the oldest.
	first := (SELECT d.seq FROM outbox_detour d WHERE d.target = p_target AND d.ready_at IS NULL
		AND d.state IN ('pending', 'sending') AND NOT (d.state = 'pending' AND d.why = 'deferred' AND d.next_attempt_at > s.now)
		ORDER BY d.ready_at, d.seq LIMIT 1);
	s.oldest := least(s.oldest, (SELECT m.created_at FROM outbox_message m WHERE m.seq = first),
		(SELECT k.created_at FROM outbox_kept k WHERE k.seq = first),
		(SELECT d.ready_at FROM outbox_detour d WHERE d.target = p_target AND d.ready_at <= s.now
			AND d.state IN ('pending', 'sending') ORDER BY d.ready_at LIMIT 1));
END $$;

CREATE OR REPLACE FUNCTION outbox_stats(p_cap bigint, p_now timestamptz) RETURNS SETOF outbox_numbers
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	s outbox_numbers;
	t outbox_target;
	v outbox_reading;
	l outbox_receipt;
	before record;
BEGIN
	s.now := outbox_now(p_now);
	s.messages := (SELECT count(*) FROM (SELECT FROM outbox_message m LIMIT p_cap) n);
	FOR t IN SELECT * FROM outbox_target ORDER BY name COLLATE "C" LOOP
		v := outbox_reading_of(t);
		s.target := t.name;
		s.paused := t.paused;
		s.paused_by := t.paused_by;
		s.paused_reason := t.paused_reason;
		s.sending := 0;
		s.delivered_ever := 0;
		s.delivered_minute := 0;
		s.retries_minute := 0;
		FOREACH l IN ARRAY v.last LOOP
			before := outbox_totals_before(l, s.now - interval '60 seconds' + interval '1 microsecond');
			s.sending := s.sending + l.claim_count;
			s.delivered_ever := s.delivered_ever + l.delivered_total;
			s.delivered_minute := s.delivered_minute + l.delivered_total - before.delivered;
			s.retries_minute := s.retries_minute + l.retried_total - before.retried;
		END LOOP;
		SELECT c.pending, c.oldest INTO s.pending, s.oldest FROM outbox_count_unsettled(t, p_cap, s.now) c;
		s.sending := least(s.sending, p_cap);
		s := outbox_count_detours(t.name, p_cap, s);
		IF s.oldest IS NOT NULL THEN
			s.oldest := greatest(s.oldest, t.resumed_at, t.created_at); -- nothing could be sent before
		END IF;
		s.outage := NULL;
		s.outage_since := NULL;
		SELECT w.outage, w.outage_since INTO s.outage, s.outage_since FROM outbox_worker w
			WHERE w.target = t.name AND w.alive_until > s.now AND w.outage IS NOT NULL
			ORDER BY w.outage_since LIMIT 1;
		FOR s.lane, s.owner, s.lease_until, s.takeovers IN
			SELECT n.lane, n.owner, n.lease_until, n.takeovers FROM outbox_lane n WHERE n.target = t.name ORDER BY n.lane
		LOOP
			s.receipts := (v.last[s.lane + 1]).n;
			s.refused := outbox_position_fault(v.last[s.lane + 1]);
			RETURN NEXT s;
		END LOOP;
	END LOOP;
	IF s.target IS NULL THEN
		RETURN NEXT s;
	END IF;
END $$;
