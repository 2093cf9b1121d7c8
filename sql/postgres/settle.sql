-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: settling a claim.
--
-- A log row that was delivered needs nothing: the position passes it. Every other outcome of a log row
-- becomes a detour, except for the returned ones at its end: the position simply stops before them.
-- Detours are updated in place.

-- The name of an outcome, which programs pass as a number. Inlined.
CREATE OR REPLACE FUNCTION outbox_outcome_name(outcome integer) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT (ARRAY['delivered', 'returned', 'waiting', 'deferred', 'parked', 'failed'])[outcome]
$$;

-- The first in line of each of these keys may be a parked one, which nothing else would wake. The condition on the state
-- is written for the index by key: with "= 'pending'" the planner would use the index by state if the statistics show
-- few pending ones, and read all of them for each key.
CREATE OR REPLACE FUNCTION outbox_promote(p_target text, p_keys text[], p_hold boolean, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	places tid[];
BEGIN
	places := outbox_detours_at(p_target, ARRAY(
		SELECT first.seq FROM (SELECT DISTINCT k FROM unnest(p_keys) k WHERE k IS NOT NULL) keys
		CROSS JOIN LATERAL (SELECT f.seq, f.next_attempt_at FROM outbox_detour f
			WHERE f.target = p_target AND f.key = keys.k AND f.state IN ('pending', 'failed') AND f.state <> 'failed'
				AND NOT (f.why = 'deferred' AND f.next_attempt_at > p_now)
			ORDER BY f.key, f.seq LIMIT 1) first
		WHERE first.next_attempt_at IS NULL
			AND NOT (p_hold AND EXISTS (SELECT FROM outbox_detour b WHERE b.target = p_target
				AND b.key = keys.k AND b.state = 'failed' AND b.seq < first.seq))));
	UPDATE outbox_detour d SET next_attempt_at = p_now WHERE d.ctid = ANY (places);
END $$;

-- What is in flight, ascending.
CREATE OR REPLACE FUNCTION outbox_sending(p_target text, p_lane integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET enable_sort = off SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
BEGIN
	RETURN ARRAY(SELECT d.seq FROM outbox_detour d WHERE d.target = p_target
		AND (d.state, d.seq) >= ('sending', 0) AND (d.state, d.seq) <= ('sending', 9223372036854775807)
		AND d.lane = p_lane ORDER BY d.state, d.seq);
END $$;

-- Writes the outcomes other than "delivered" to their detours, and what failed also to the dead letter target. What
-- arrived as a dead letter while it was in flight is sent again. Returns the first of the tail that goes back to the
-- log, or NULL.
CREATE OR REPLACE FUNCTION outbox_settle_detours(last outbox_receipt, o outbox_outcomes, p_n bigint, p_owner text, p_hold boolean,
	p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	sending bigint[] := outbox_sending(last.target, last.lane);
	stop bigint := greatest(o.last_kept, (SELECT max(s) FROM unnest(sending) s));
	tail bigint;
	keys text[];
	failed bigint[];
	places tid[];
BEGIN
	IF cardinality(sending) <> last.claim_detours OR EXISTS (
			SELECT FROM unnest(o.seqs) s WHERE s <> ALL (sending) AND (s <= last.pos OR s > last.claim_end)) THEN
		RAISE EXCEPTION 'target %, lane %: the outcomes given are not those of the % messages in flight',
			last.target, last.lane, last.claim_count USING ERRCODE = 'OB003';
	END IF;
	SELECT min(s) INTO tail FROM unnest(o.seqs, o.outcomes) u(s, outcome)
		WHERE outbox_outcome_name(outcome) = 'returned' AND s > stop;

	places := outbox_detours_at(last.target, ARRAY(SELECT s FROM unnest(sending) s WHERE s <> ALL (o.seqs)));
	WITH delivered AS (
		UPDATE outbox_detour d SET
			state = CASE WHEN dead_n = last.n THEN 'pending' ELSE 'delivered' END,
			why = CASE WHEN dead_n = last.n THEN 'retry' END,
			next_attempt_at = CASE WHEN dead_n = last.n THEN p_now END,
			ready_at = CASE WHEN dead_n = last.n THEN dead_at ELSE ready_at END,
			attempts = CASE WHEN dead_n = last.n THEN 0 ELSE attempts END,
			suspect = false, last_status_at = p_now, owner = p_owner, n = p_n
		WHERE d.ctid = ANY (places)
		RETURNING key)
	SELECT array_agg(key) INTO keys FROM delivered;

	places := outbox_detours_at(last.target, ARRAY(SELECT s FROM unnest(o.seqs) s WHERE s = ANY (sending)));
	WITH u AS (
		SELECT i.seq, outbox_outcome_name(i.outcome) AS outcome, i.attempts, i.delay, i.due, i.suspect, i.error
		FROM unnest(o.seqs, o.outcomes, o.attempts, o.delays, o.dues, o.suspects, o.errors)
			AS i(seq, outcome, attempts, delay, due, suspect, error)
	), changed AS (
		UPDATE outbox_detour d SET
			state = CASE WHEN u.outcome = 'failed' THEN 'failed' ELSE 'pending' END,
			why = CASE u.outcome WHEN 'returned' THEN d.why WHEN 'waiting' THEN 'retry' WHEN 'failed' THEN NULL ELSE u.outcome END,
			attempts = CASE WHEN u.outcome = 'returned' THEN d.attempts ELSE u.attempts END,
			failing_since = CASE WHEN u.outcome <> 'returned' AND u.attempts > 0 THEN coalesce(d.failing_since, p_now)
				ELSE d.failing_since END,
			next_attempt_at = CASE u.outcome WHEN 'returned' THEN p_now
				WHEN 'waiting' THEN p_now + u.delay * interval '1 microsecond' WHEN 'deferred' THEN u.due END,
			suspect = CASE WHEN u.outcome = 'returned' THEN d.suspect ELSE u.suspect END,
			last_error = coalesce(u.error, d.last_error),
			last_status_at = p_now,
			owner = CASE WHEN u.outcome = 'returned' THEN d.owner ELSE p_owner END,
			n = CASE WHEN u.outcome = 'returned' THEN d.n ELSE p_n END,
			ready_at = CASE WHEN u.outcome = 'deferred' THEN u.due ELSE d.ready_at END
		FROM u
		WHERE d.ctid = ANY (places) AND d.seq = u.seq
		RETURNING d.key, u.outcome
	), made AS (
		INSERT INTO outbox_detour AS d (target, seq, id, key, lane, state, why, attempts, next_attempt_at, failing_since,
			suspect, last_error, last_status_at, owner, n, ready_at)
		SELECT last.target, m.seq, m.id, m.key, last.lane,
			CASE WHEN u.outcome = 'failed' THEN 'failed' ELSE 'pending' END,
			CASE u.outcome WHEN 'returned' THEN 'retry' WHEN 'waiting' THEN 'retry' WHEN 'failed' THEN NULL ELSE u.outcome END,
			CASE WHEN u.outcome = 'returned' THEN 0 ELSE u.attempts END,
			CASE u.outcome WHEN 'returned' THEN p_now WHEN 'waiting' THEN p_now + u.delay * interval '1 microsecond'
				WHEN 'deferred' THEN u.due END,
			CASE WHEN u.outcome <> 'returned' AND u.attempts > 0 THEN p_now END,
			u.outcome <> 'returned' AND u.suspect, CASE WHEN u.outcome <> 'returned' THEN u.error END, p_now, p_owner,
			CASE WHEN u.outcome <> 'returned' THEN p_n END,
			CASE WHEN u.outcome = 'deferred' THEN u.due WHEN m.due_at > m.created_at THEN m.due_at END
		FROM u JOIN outbox_message m ON m.seq = u.seq
		WHERE u.seq <> ALL (sending) AND (tail IS NULL OR u.seq < tail OR u.outcome <> 'returned')
		-- it arrived as a dead letter while its log row was in flight
		ON CONFLICT (target, seq) DO UPDATE SET state = excluded.state, why = excluded.why, attempts = excluded.attempts,
			next_attempt_at = excluded.next_attempt_at, failing_since = excluded.failing_since,
			suspect = excluded.suspect, last_error = excluded.last_error, last_status_at = excluded.last_status_at,
			owner = excluded.owner, n = excluded.n, ready_at = excluded.ready_at
		RETURNING key, why
	)
	SELECT keys || array_agg(key) INTO keys FROM (
		SELECT key FROM changed WHERE outcome IN ('deferred', 'parked', 'failed')
		UNION ALL SELECT key FROM made WHERE why = 'parked') k;

	IF keys IS NOT NULL THEN
		PERFORM outbox_promote(last.target, keys, p_hold, p_now);
	END IF;
	failed := ARRAY(SELECT u.seq FROM unnest(o.seqs, o.outcomes) u(seq, outcome) WHERE outbox_outcome_name(u.outcome) = 'failed');
	IF cardinality(failed) > 0 THEN
		PERFORM outbox_dead_letters(last, failed, p_now);
	END IF;
	RETURN tail;
END $$;

-- Work out the receipt that settles the claim of the last one, if it has one.
CREATE OR REPLACE FUNCTION outbox_settle(q outbox_request, last outbox_receipt, o outbox_outcomes, p_hold boolean, p_now timestamptz)
RETURNS outbox_receipt
LANGUAGE plpgsql AS $$
DECLARE
	succ outbox_receipt := outbox_next_receipt(last, q.new_token, q.owner, p_now);
	others integer := coalesce(cardinality(o.seqs), 0);
	tail bigint;
	progress integer := o.count;
BEGIN
	succ.route_version := q.version;
	succ.takeovers := last.takeovers;
	IF last.claim_count = 0 AND o.count = 0 THEN
		RETURN succ;
	END IF;
	IF o.count <> last.claim_count OR o.first <> last.claim_seq OR o.last <> last.claim_last THEN
		RAISE EXCEPTION 'target %, lane %: the outcomes given are not those of the % messages in flight',
			last.target, last.lane, last.claim_count USING ERRCODE = 'OB003';
	END IF;
	succ.delivered := o.count - others;
	IF others > 0 OR last.claim_detours > 0 THEN
		tail := outbox_settle_detours(last, o, succ.n, succ.owner, p_hold, succ.settled_at);
		SELECT count(*) FILTER (WHERE name = 'waiting'), count(*) FILTER (WHERE name = 'failed'),
			count(*) FILTER (WHERE name = 'parked'), count(*) FILTER (WHERE name = 'deferred'),
			o.count - count(*) FILTER (WHERE name = 'returned')
		INTO succ.retried, succ.failed, succ.parked, succ.deferred, progress
		FROM (SELECT outbox_outcome_name(n) AS name FROM unnest(o.outcomes) n) outcome;
	END IF;
	succ.delivered_total := last.delivered_total + succ.delivered;
	succ.retried_total := last.retried_total + succ.retried;
	-- all returned: as if never claimed, so that the window can be renewed
	succ.settled_to := CASE WHEN tail IS NULL THEN last.claim_end WHEN tail = o.first THEN last.pos ELSE tail - 1 END;
	IF succ.settled_to = 9223372036854775807 THEN -- the window is read to its end
		succ.prev := last.cur;
		succ.prev_seq := last.cur_seq;
		succ.prev_xid := last.cur_xid;
		succ.pos := 0;
		succ.caution_end := 0;
	ELSE
		succ.pos := succ.settled_to;
	END IF;
	succ.claim_end := succ.pos;
	succ.takeovers := CASE WHEN progress > 0 THEN 0 ELSE last.takeovers END;
	succ.caution_left := greatest(last.caution_left - progress, 0);
	IF NOT outbox_is_cautious(succ) THEN
		succ.caution_end := 0;
	END IF;
	RETURN succ;
END $$;
