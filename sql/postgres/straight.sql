-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: the short way through a call that settles and claims.
--
-- Almost every call is like this: what was in flight was delivered, the lane has no detours, and next come new rows of
-- the log, or none. PL/pgSQL makes every expression ready anew in each transaction, and every row variable is copied at
-- each step, so that a call costs what it has of them. Here are few: the lane is read and judged by one statement, the
-- rows are counted by one, and the rest is plain variables. Whatever is unusual is left to outbox_settle_and_claim(), in
-- the same transaction, before anything is written.
--
-- variable_conflict: users may add columns to the log that have the name of a variable.

-- Where a lane stands when its claim of p_count messages is settled as delivered. No row: the long way, which knows what
-- is wrong. opens: next comes a new window, or one of which nothing is settled yet. maybe_late: transactions that were there
-- when the window before was opened may have messages.
-- Inlined: no SET, not volatile.
CREATE OR REPLACE FUNCTION outbox_straight_lane(p_target text, p_lane integer, p_n bigint, p_token bigint, p_version bigint,
	p_count integer, p_first bigint, p_last bigint, p_here pg_snapshot, p_log_end bigint,
	OUT lanes integer, OUT types text[], OUT kind text, OUT published_only boolean, OUT bands bigint[],
	OUT headers text[],
	OUT opens boolean, OUT maybe_late boolean, OUT pos bigint, OUT floor bigint, OUT settled_to bigint, OUT takeovers integer,
	OUT delivered_total bigint, OUT retried_total bigint, OUT prev pg_snapshot, OUT prev_seq bigint, OUT prev_xid xid8,
	OUT cur pg_snapshot, OUT cur_seq bigint, OUT cur_xid xid8) RETURNS SETOF record
LANGUAGE sql STABLE ROWS 1 AS $$
	SELECT m.lanes, o.types, o.kind, coalesce(o.published_only, false), o.bands, o.headers, s.pos = 0,
		s.pos < s.prev_seq AND (pg_snapshot_xmin(s.prev) < pg_snapshot_xmax(s.prev) OR pg_snapshot_xmax(s.prev) <> s.prev_xid),
		s.pos, s.floor, s.settled_to, s.takeovers, s.delivered_total, s.retried_total, s.prev, s.prev_seq, s.prev_xid,
		s.cur, s.cur_seq, s.cur_xid
	FROM (SELECT r.floor, CASE WHEN p_count = 0 THEN r.takeovers ELSE 0 END AS takeovers,
			r.delivered_total + p_count AS delivered_total, r.retried_total, r.cur, r.cur_seq, r.cur_xid,
			CASE WHEN p_count = 0 THEN 0 ELSE r.claim_end END AS settled_to,
			CASE WHEN p_count = 0 THEN r.pos WHEN r.claim_end = 9223372036854775807 THEN 0 ELSE r.claim_end END AS pos,
			CASE WHEN p_count > 0 AND r.claim_end = 9223372036854775807 THEN r.cur ELSE r.prev END AS prev,
			CASE WHEN p_count > 0 AND r.claim_end = 9223372036854775807 THEN r.cur_seq ELSE r.prev_seq END AS prev_seq,
			CASE WHEN p_count > 0 AND r.claim_end = 9223372036854775807 THEN r.cur_xid ELSE r.prev_xid END AS prev_xid
		FROM (SELECT c.* FROM outbox_receipt c WHERE c.target = p_target AND c.lane = p_lane AND c.n >= p_n
			ORDER BY c.target DESC, c.lane DESC, c.n DESC LIMIT 1) r
		WHERE r.n = p_n AND r.token = p_token AND r.claim_count = p_count AND r.claim_seq = p_first AND r.claim_last = p_last
			AND r.claim_detours = 0 AND r.caution_left = 0 AND r.caution_end = 0
			AND r.cur_seq <= p_log_end AND r.cur_xid < pg_snapshot_xmax(p_here) OFFSET 0) s
	CROSS JOIN outbox_target t
	CROSS JOIN outbox_lane l
	CROSS JOIN (SELECT i.value::integer AS lanes FROM outbox_meta i WHERE i.name = 'lanes') m
	LEFT JOIN outbox_route o ON o.target = p_target AND o.version = p_version
	WHERE t.name = p_target AND t.version = p_version AND NOT t.paused
		AND l.target = p_target AND l.lane = p_lane AND l.refused IS NULL
		AND (SELECT n.lane FROM outbox_lane n WHERE n.target = p_target ORDER BY n.target DESC, n.lane DESC LIMIT 1) + 1 = m.lanes
		AND (SELECT d.seq FROM outbox_detour d WHERE d.target = p_target
			AND (d.lane, d.seq) >= (p_lane, 0) AND (d.lane, d.seq) <= (p_lane, 9223372036854775807)
			AND (d.state IN ('pending', 'sending') OR d.ahead) ORDER BY d.lane, d.seq LIMIT 1) IS NULL
		AND (NOT t.hold OR (SELECT d.seq FROM outbox_detour d WHERE d.target = p_target
			AND (d.state, d.seq) >= ('failed', 0) AND (d.state, d.seq) <= ('failed', 9223372036854775807)
			ORDER BY d.state, d.seq LIMIT 1) IS NULL)
$$;

-- ---- if there are late messages, too: how many messages are next, and these ------------------------------------

CREATE OR REPLACE FUNCTION outbox_count_with_late(p_pos bigint, p_prev pg_snapshot, p_prev_seq bigint, p_late xid8[], p_cur pg_snapshot,
	p_cur_seq bigint, p_lane integer, p_lanes integer, p_types text[], p_kind text, p_published_only boolean, p_bands bigint[],
	p_headers text[], p_max bigint, OUT claimed bigint, OUT first bigint, OUT last bigint, OUT weight bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
	SELECT count(*), coalesce(min(c.seq), 0), coalesce(max(c.seq), 0), coalesce(sum(c.size), 0) INTO claimed, first, last, weight
	FROM (SELECT w.seq, outbox_weight(w.payload, w.payload_bin, w.headers) AS size
		FROM outbox_window(p_pos, p_prev, p_prev_seq, p_late, p_cur, p_cur_seq, p_lane, p_lanes, p_types, p_kind,
			p_published_only, p_bands, p_headers, p_max, outbox_scan_max()) w
		-- the union has up to p_max rows of each half: what comes after the first p_max is not known completely
		ORDER BY w.seq LIMIT p_max) c;
END $$;

CREATE OR REPLACE FUNCTION outbox_read_with_late(p_pos bigint, p_prev pg_snapshot, p_prev_seq bigint, p_late xid8[], p_cur pg_snapshot,
	p_cur_seq bigint, p_lane integer, p_lanes integer, p_types text[], p_kind text, p_published_only boolean, p_bands bigint[],
	p_headers text[], p_max bigint, p_last bigint) RETURNS SETOF outbox_claimed
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN QUERY SELECT NULL::bigint[], w.seq, w.id, w.type, w.key, w.kind, w.published, w.created_at, w.event_time, w.due_at,
			w.expires_at, w.priority, w.content_type, w.source, w.subject, w.topic, w.correlation_id, w.causation_id,
			w.traceparent, w.headers, w.payload, w.payload_bin, 0, NULL::timestamptz, 0
		FROM outbox_window(p_pos, p_prev, p_prev_seq, p_late, p_cur, p_cur_seq, p_lane, p_lanes, p_types, p_kind,
			p_published_only, p_bands, p_headers, p_max, NULL) w
		WHERE w.seq <= p_last ORDER BY w.seq LIMIT p_max;
END $$;

-- ---- the call ----------------------------------------------------------------------------------------------

-- What a relay calls. The arguments are those of outbox_request, outbox_outcomes and outbox_ahead, in this order: as rows
-- they would have to be built and taken apart.
CREATE OR REPLACE FUNCTION outbox_next_batch(p_target text, p_lane integer, p_owner text, p_n bigint, p_token bigint, p_new_token bigint,
	p_version bigint, p_max bigint, p_max_bytes bigint, p_now timestamptz, p_ahead bigint, p_ahead_first bigint, p_ahead_last bigint,
	p_count integer, p_first bigint, p_last bigint, p_last_kept bigint, p_seqs bigint[], p_outcomes integer[], p_attempts integer[],
	p_delays bigint[], p_dues timestamptz[], p_suspects boolean[], p_errors text[],
	p_ahead_seqs bigint[], p_ahead_keys text[], p_ahead_sizes bigint[])
RETURNS SETOF outbox_claimed
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET lock_timeout = '10s' SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
	here pg_snapshot; log_end bigint;
	s record;        -- where the lane stands
	cur pg_snapshot; late xid8[];
	low bigint; high bigint;
	claimed bigint := 0; weight bigint; returned bigint;
	claim_seq bigint; claim_last bigint; claim_end bigint;
	head outbox_claimed; straight boolean := false;
BEGIN
	IF p_count = 0 AND (SELECT t.paused FROM outbox_target t WHERE t.name = p_target) THEN -- asked at each poll: without a lock
		head := outbox_look_first(ROW(p_target, p_lane, p_owner, p_n, p_token, p_new_token, p_version, p_max, p_max_bytes, p_now,
			0, 0, 0)::outbox_request);
		IF head.head IS NOT NULL THEN
			RETURN NEXT head;
			RETURN;
		END IF;
	END IF;
	-- In this order, and the transaction's number last, which it gets with its first lock: see outbox_fresh_moment().
	IF pg_current_xact_id_if_assigned() IS NULL THEN
		here := pg_current_snapshot();
		log_end := coalesce(pg_sequence_last_value('outbox_message_seq_seq'), outbox_log_end());
		PERFORM outbox_prepare_commit(p_count > 0);
	ELSE
		SELECT f.snapshot, f.log_end INTO here, log_end FROM outbox_fresh_moment() f;
	END IF;
	PERFORM outbox_lock_lane(p_target, p_lane);
	IF p_max > 0 AND cardinality(p_seqs) = 0 THEN
		SELECT * INTO s FROM outbox_straight_lane(p_target, p_lane, p_n, p_token, p_version, p_count, p_first, p_last, here, log_end);
		straight := FOUND;
	END IF;
	IF straight THEN
		IF s.opens THEN
			cur := here;
			s.cur_seq := log_end;
			s.cur_xid := pg_current_xact_id();
			-- of this server and this numbering of the log, or else the long way
			straight := current_setting('outbox.server_of', true) IS NOT DISTINCT FROM current_schema()
				AND outbox_numbered_again(s.floor, s.prev_seq, s.prev_xid, 1000) IS NULL;
		ELSE
			cur := s.cur::text; -- taken out of a row, a snapshot is packed, and would be unpacked for every message
		END IF;
		IF s.maybe_late THEN
			late := outbox_late(s.prev, s.prev_xid, cur);
		END IF;
		low := greatest(s.pos, s.floor, s.prev_seq);
		high := outbox_reach(low, 0, s.cur_seq, outbox_scan_max());
	END IF;

	IF straight AND p_ahead > 0 THEN
		-- Read after the claim of the last receipt, in its window: the next ones, if the lane has not moved and nobody amended one.
		straight := late IS NULL AND p_ahead <= p_max AND p_count > 0 AND NOT s.opens AND NOT outbox_any_amended(p_ahead_first, p_ahead_last);
		claimed := p_ahead;
		claim_seq := p_ahead_first;
		claim_last := p_ahead_last;
		claim_end := p_ahead_last; -- nobody looked further
	ELSIF straight THEN
		IF late IS NULL THEN -- first the totals, then the rows, so that these are copied only once
			SELECT count(*), coalesce(min(c.seq), 0), coalesce(max(c.seq), 0), coalesce(sum(c.size), 0)
			INTO claimed, claim_seq, claim_last, weight
			FROM (SELECT w.seq, outbox_weight(w.payload, w.payload_bin, w.headers) AS size
				FROM outbox_stretch(low, high, s.prev, cur, p_lane, s.lanes, s.types, s.kind, s.published_only, false, s.bands, s.headers) w
				ORDER BY w.seq LIMIT p_max) c;
		ELSE
			SELECT * INTO claimed, claim_seq, claim_last, weight FROM outbox_count_with_late(greatest(s.pos, s.floor), s.prev,
				s.prev_seq, late, cur, s.cur_seq, p_lane, s.lanes, s.types, s.kind, s.published_only, s.bands, s.headers, p_max);
		END IF;
		claim_end := CASE WHEN claimed >= p_max THEN claim_last WHEN high < s.cur_seq THEN high ELSE 9223372036854775807 END;
		straight := claimed = 1 OR weight <= p_max_bytes;
		IF claimed = 0 THEN -- settle only: the window that was opened here is read to its end
			straight := p_count > 0 AND s.opens AND high = s.cur_seq;
			s.prev := cur;
			s.prev_seq := s.cur_seq;
			s.prev_xid := s.cur_xid;
			claim_end := 0;
		END IF;
	END IF;

	IF NOT straight THEN
		PERFORM set_config('outbox.moment', here::text || ' ' || log_end, true);
		RETURN QUERY SELECT * FROM outbox_settle_and_claim(ROW(p_target, p_lane, p_owner, p_n, p_token, p_new_token, p_version, p_max,
				p_max_bytes, p_now, p_ahead, p_ahead_first, p_ahead_last)::outbox_request,
			ROW(p_count, p_first, p_last, p_last_kept, p_seqs, p_outcomes, p_attempts, p_delays, p_dues, p_suspects,
				p_errors)::outbox_outcomes, ROW(p_ahead_seqs, p_ahead_keys, p_ahead_sizes)::outbox_ahead);
		RETURN;
	END IF;

	INSERT INTO outbox_receipt (target, lane, n, token, settled_at, route_version, prev_seq, prev_xid, cur_seq, cur_xid, pos, claim_end,
		claim_seq, claim_last, settled_to, delivered_total, retried_total, claim_count, takeovers, delivered, floor, owner, prev, cur)
	VALUES (p_target, p_lane, p_n + 1, p_new_token, outbox_now(p_now), p_version, s.prev_seq, s.prev_xid, s.cur_seq, s.cur_xid, s.pos, claim_end,
		claim_seq, claim_last, s.settled_to, s.delivered_total, s.retried_total, claimed, s.takeovers, p_count, s.floor, p_owner, s.prev, cur);
	IF claimed > 0 AND p_ahead = 0 THEN
		IF late IS NULL THEN
			RETURN QUERY SELECT NULL::bigint[], w.seq, w.id, w.type, w.key, w.kind, w.published, w.created_at, w.event_time, w.due_at,
					w.expires_at, w.priority, w.content_type, w.source, w.subject, w.topic, w.correlation_id, w.causation_id,
					w.traceparent, w.headers, w.payload, w.payload_bin, 0, NULL::timestamptz, 0
				FROM outbox_stretch(low, claim_last, s.prev, cur, p_lane, s.lanes, s.types, s.kind, s.published_only,
					claim_last - low = claimed, s.bands, s.headers) w -- as many as there are numbers: no need to filter again
				ORDER BY w.seq;
		ELSE
			RETURN QUERY SELECT * FROM outbox_read_with_late(greatest(s.pos, s.floor), s.prev, s.prev_seq, late, cur,
				least(s.cur_seq, claim_last), p_lane, s.lanes, s.types, s.kind, s.published_only, s.bands, s.headers, claimed, claim_last);
		END IF;
		GET DIAGNOSTICS returned = ROW_COUNT;
		IF returned <> claimed THEN
			PERFORM outbox_raise_removed(p_target);
		END IF;
	END IF;
	head.head := ARRAY[p_n + 1, p_new_token, outbox_micros(outbox_now(p_now)), 0, 0, 0, 0, p_ahead];
	RETURN NEXT head;
END $$;
