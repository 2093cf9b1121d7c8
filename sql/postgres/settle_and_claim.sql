-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: settle the claim in flight and claim the next batch, with one receipt, in four steps.
--
-- 1. Look: an idle lane takes no lock, no transaction number and writes nothing. A relay looks at all its lanes at once
--    (outbox_lanes_with_work()) and asks only for those with work.
-- 2. Fence: lock the lane; its last receipt must be the caller's.
-- 3. Settle: write the outcomes of the claim in flight (settle.sql).
-- 4. Claim: choose the next messages (claim.sql). Those that the caller has read ahead (src/store/postgres/readahead.c) are
--    recorded in the receipt, and not returned.
-- This is the long way, for detours and whatever else is unusual. What a relay calls is outbox_next_batch(), in straight.sql.
--
-- variable_conflict: users may add columns to the log that have the name of a variable.

-- How far the log may get ahead of an idle lane before an empty receipt moves the lane on.
CREATE OR REPLACE FUNCTION outbox_ahead_max() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 1000::bigint $$;

CREATE OR REPLACE FUNCTION outbox_lane_view(q outbox_request) RETURNS outbox_view
LANGUAGE plpgsql STABLE AS $$
DECLARE
	v outbox_view;
	refused boolean;
	there integer;
BEGIN
	SELECT t.version, t.paused, t.hold, t.unordered,
		(SELECT value::integer FROM outbox_meta WHERE name = 'lanes'),
		r.types, r.kind, coalesce(r.published_only, false),
		(SELECT d.seq FROM outbox_detour d WHERE d.target = q.target
			AND (d.lane, d.seq) >= (q.lane, 0) AND (d.lane, d.seq) <= (q.lane, 9223372036854775807)
			AND (d.state IN ('pending', 'sending') OR d.ahead) ORDER BY d.lane, d.seq LIMIT 1) IS NOT NULL
		OR (t.hold AND (SELECT d.seq FROM outbox_detour d WHERE d.target = q.target
			AND (d.state, d.seq) >= ('failed', 0) AND (d.state, d.seq) <= ('failed', 9223372036854775807)
			ORDER BY d.state, d.seq LIMIT 1) IS NOT NULL),
		r.bands, r.headers
	INTO v
	FROM outbox_target t LEFT JOIN outbox_route r ON r.target = t.name AND r.version = q.version
	WHERE t.name = q.target;
	IF NOT FOUND THEN
		PERFORM outbox_no_target(q.target);
	END IF;
	SELECT l.refused IS NOT NULL, o.lane + 1 INTO refused, there FROM outbox_lane l
		CROSS JOIN (SELECT n.lane FROM outbox_lane n WHERE n.target = q.target ORDER BY n.target DESC, n.lane DESC LIMIT 1) o
		WHERE l.target = q.target AND l.lane = q.lane;
	IF refused OR there <> v.lanes THEN
		PERFORM outbox_raise_fault(coalesce(outbox_recorded_fault(q.target, q.lane), outbox_lane_count_fault(q.target, v.lanes)));
	END IF;
	RETURN v;
END $$;

-- At every look: is the lane's position beyond the end of the database?
CREATE OR REPLACE FUNCTION outbox_check_ahead(p outbox_receipt, log_end bigint, now_at pg_snapshot) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF p.cur_seq > log_end OR p.cur_xid >= pg_snapshot_xmax(now_at) THEN
		PERFORM outbox_raise_fault(outbox_ahead_fault(p, log_end, now_at));
	END IF;
END $$;

-- When a window opens: was the log's numbering restarted? And once per session, which has one server: is it this server's?
CREATE OR REPLACE FUNCTION outbox_check_window(p outbox_receipt) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	fault outbox_fault := outbox_reuse_fault(p, p.prev_seq, p.prev_xid, 1000);
BEGIN
	IF fault.what IS NULL AND current_setting('outbox.server_of', true) IS DISTINCT FROM current_schema() THEN
		fault := outbox_server_fault(p);
		PERFORM set_config('outbox.server_of', current_schema(), false);
	END IF;
	IF fault.what IS NOT NULL THEN
		PERFORM outbox_raise_fault(fault);
	END IF;
END $$;

-- Are there so many late messages, of any lane, that a lane must not look at them with every poll?
CREATE OR REPLACE FUNCTION outbox_much_is_late(p_late xid8[], p_floor bigint, p_prev_seq bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT count(*) > outbox_ahead_max() FROM (
		SELECT FROM unnest(p_late) AS t(x) CROSS JOIN LATERAL (
			SELECT FROM outbox_message m
			WHERE (m.xid, m.seq) > (t.x, p_floor) AND (m.xid, m.seq) <= (t.x, p_prev_seq)
				AND m.seq > p_floor AND m.seq <= p_prev_seq
			ORDER BY m.xid, m.seq LIMIT outbox_ahead_max() + 1) l
		LIMIT outbox_ahead_max() + 1) q);
END $$;

-- Has one of these transactions messages there, of whatever lane? Most of those that were running are other programs'.
CREATE OR REPLACE FUNCTION outbox_any_is_late(p_late xid8[], p_floor bigint, p_prev_seq bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN p_late IS NOT NULL AND EXISTS (SELECT FROM unnest(p_late) AS t(x) CROSS JOIN LATERAL (
		SELECT FROM outbox_message m
		WHERE (m.xid, m.seq) > (t.x, p_floor) AND (m.xid, m.seq) <= (t.x, p_prev_seq)
			AND m.seq > p_floor AND m.seq <= p_prev_seq
		ORDER BY m.xid, m.seq LIMIT 1) l);
END $$;

-- Nothing is in flight: is there anything to do at all?
CREATE OR REPLACE FUNCTION outbox_has_work(last outbox_receipt, v outbox_view, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
	cur pg_snapshot := pg_current_snapshot();
	log_end bigint := outbox_log_end();
	late xid8[];
BEGIN
	PERFORM outbox_check_ahead(last, log_end, cur);
	IF last.cur::text <> last.prev::text OR log_end - last.cur_seq > outbox_ahead_max() THEN
		RETURN true;
	END IF;
	IF v.detours AND EXISTS (SELECT FROM outbox_due(last.target, last.lane, v.hold, v.unordered, cur, p_now, 1,
			9223372036854775807)) THEN
		RETURN true;
	END IF;
	late := outbox_late(last.prev, last.prev_xid, cur);
	IF late IS NULL AND log_end <= last.prev_seq THEN
		RETURN false;
	END IF;
	IF outbox_much_is_late(late, last.floor, last.prev_seq) THEN
		RETURN true;
	END IF;
	RETURN EXISTS (SELECT FROM outbox_window(last.floor, last.prev, last.prev_seq, late, cur, log_end, last.lane, v.lanes,
			v.types, v.kind, v.published_only, v.bands, v.headers, 1, outbox_scan_max(), CASE WHEN v.detours THEN last.target END));
END $$;

-- The same in one look at several lanes that have nothing in flight: which of them must be asked for more? It may name one
-- for which nothing is found then, and does where that call fails. Where nothing happened it costs two probes a lane: its
-- last receipt, which is the one that its owner knows, and its next detour.
CREATE OR REPLACE FUNCTION outbox_lanes_with_work(p_target text, p_version bigint, p_lanes integer[], p_ns bigint[], p_tokens bigint[],
	p_now timestamptz, OUT now timestamptz, OUT next_due timestamptz, OUT lanes integer[])
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
	here pg_snapshot := pg_current_snapshot();
	log_end bigint := outbox_log_end();
	t timestamptz := outbox_now(p_now);
	asked integer[];
	places bigint[]; -- for each of them, if more must be known: behind which place of the log it has read nothing
	low bigint;      -- the first of these places
BEGIN
	now := t;
	SELECT array_agg(e.lane), array_agg(CASE WHEN NOT e.sure THEN e.place END), min(e.place) FILTER (WHERE NOT e.sure),
		coalesce(array_agg(e.lane) FILTER (WHERE e.sure), '{}'), min(e.due) FILTER (WHERE e.due > t)
	INTO asked, places, low, lanes, next_due
	FROM (SELECT a.lane, d.next_attempt_at AS due, greatest(r.prev_seq, r.floor) AS place,
			r.n IS DISTINCT FROM a.n OR r.token <> a.token OR r.claim_count > 0 OR r.pos <> 0 OR r.cur_xid <> r.prev_xid
			OR r.cur_seq > log_end OR r.cur_xid >= pg_snapshot_xmax(here) OR log_end - r.cur_seq > outbox_ahead_max()
			OR coalesce(d.next_attempt_at <= t, false)
			-- a transaction was running when its snapshot was taken, and has messages
			OR CASE WHEN pg_snapshot_xmin(r.prev) < pg_snapshot_xmax(r.prev) OR pg_snapshot_xmax(r.prev) < r.prev_xid
				THEN outbox_any_is_late(outbox_late(r.prev, r.prev_xid, here), r.floor, r.prev_seq) ELSE false END AS sure
		FROM unnest(p_lanes, p_ns, p_tokens) a(lane, n, token)
		LEFT JOIN LATERAL (SELECT c.n, c.token, c.claim_count, c.pos, c.prev, c.prev_seq, c.prev_xid, c.cur_seq, c.cur_xid, c.floor
			FROM outbox_receipt c WHERE c.target = p_target AND c.lane = a.lane AND c.n >= a.n
			ORDER BY c.target DESC, c.lane DESC, c.n DESC LIMIT 1) r ON true
		LEFT JOIN LATERAL (SELECT o.next_attempt_at FROM outbox_detour o
			WHERE o.target = p_target AND o.lane = a.lane AND o.state = 'pending' AND o.next_attempt_at IS NOT NULL
			ORDER BY o.target, o.lane, o.next_attempt_at LIMIT 1) d ON true) e;
	IF low < log_end THEN
		lanes := lanes || ARRAY(SELECT DISTINCT m.slot % v.lanes
			FROM (SELECT i.value::integer AS lanes, r.types, r.kind, coalesce(r.published_only, false) AS published_only, r.bands, r.headers
				FROM outbox_meta i LEFT JOIN outbox_route r ON r.target = p_target AND r.version = p_version
				WHERE i.name = 'lanes' OFFSET 0) v
			CROSS JOIN outbox_message m
			WHERE m.seq > low AND m.seq <= log_end AND m.seq > places[array_position(asked, m.slot % v.lanes)]
				AND pg_visible_in_snapshot(m.xid, here)
				AND (v.types IS NULL OR m.type LIKE ANY (v.types))
				AND (v.kind IS NULL OR coalesce(m.kind, 'event') = v.kind)
				AND (NOT v.published_only OR m.published)
				AND (v.bands IS NULL OR outbox_bands_take(v.bands, m.priority, m.seq))
				AND (v.headers IS NULL OR outbox_headers_take(v.headers, m.headers))
				AND (SELECT d.seq FROM outbox_detour d WHERE (d.target, d.seq) >= (p_target, m.seq)
					AND (d.target, d.seq) <= (p_target, m.seq) ORDER BY d.target, d.seq LIMIT 1) IS NULL);
	END IF;
END $$;

-- What an operator wrote ahead of the lane is no longer ahead once the lane has passed it. Some at a time: the mark does
-- no harm on the others.
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

-- ---- the four steps ----------------------------------------------------------------------------------------

-- 1. If nothing is in flight and there is nothing to do, returns the whole answer. NULL: go on.
CREATE OR REPLACE FUNCTION outbox_look_first(q outbox_request) RETURNS outbox_claimed
LANGUAGE plpgsql STABLE AS $$
DECLARE
	last outbox_receipt;
	v outbox_view;
	now timestamptz := outbox_now(q.now);
BEGIN
	last := outbox_last_receipt(q.target, q.lane);
	IF last.n <> q.n OR last.token <> q.token OR last.claim_count > 0 THEN
		RETURN NULL;
	END IF;
	v := outbox_lane_view(q);
	IF outbox_may_claim(q, v) AND outbox_has_work(last, v, now) THEN
		RETURN NULL;
	END IF;
	RETURN outbox_claim_head(last, now, v.paused, v.version <> q.version,
		CASE WHEN v.detours THEN outbox_next_due(q.target, q.lane, now) END);
END $$;

-- 2. The lane's last receipt, with the lane locked: the one that the caller knows, or the one that this request made
-- before, if its answer was lost.
CREATE OR REPLACE FUNCTION outbox_fence(q outbox_request) RETURNS outbox_receipt
LANGUAGE plpgsql AS $$
DECLARE
	last outbox_receipt;
BEGIN
	PERFORM outbox_lock_lane(q.target, q.lane);
	last := outbox_last_receipt(q.target, q.lane, q.n);
	IF (last.n = q.n AND last.token = q.token) OR (last.n = q.n + 1 AND last.token = q.new_token) THEN
		RETURN last;
	END IF;
	RAISE EXCEPTION 'target %, lane %: receipt % is no longer the last one (% is); another relay has the lane',
		q.target, q.lane, q.n, last.n USING ERRCODE = 'OB005';
END $$;

-- Nothing was claimed. The new position is recorded if a receipt is written anyway, if it has moved far, or if messages came
-- late: whose they are would be asked at every look. Returns the receipt that is the last one then.
CREATE OR REPLACE FUNCTION outbox_pass(last outbox_receipt, succ outbox_receipt, fresh outbox_moment) RETURNS outbox_receipt
LANGUAGE plpgsql AS $$
BEGIN
	IF last.claim_count = 0 AND succ.pos = last.pos AND last.cur::text = last.prev::text
			AND succ.prev_seq - last.prev_seq <= outbox_ahead_max()
			AND NOT outbox_any_is_late(outbox_late(last.prev, last.prev_xid, fresh.snapshot), last.floor, last.prev_seq) THEN
		RETURN last;
	END IF;
	succ.claim_end := succ.pos;
	PERFORM outbox_append_receipt(succ);
	RETURN succ;
END $$;

-- A claim need not be durable before its messages are sent: if the server crashes and forgets it, the lane is fenced and
-- they are sent again. What is settled must be; and so must the messages, whose publishers may not have waited for the disk
-- (synchronous_commit off): this commit waits for them then, also where ours would not.
CREATE OR REPLACE FUNCTION outbox_prepare_commit(p_settles boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	IF NOT p_settles AND pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() THEN
		PERFORM set_config('synchronous_commit', 'off', true);
	ELSE
		PERFORM outbox_commit_durably();
	END IF;
END $$;

-- The log as it is now: a snapshot, the end of the log, and then the number of this transaction, in this order (see
-- outbox_receipt). The transaction gets its number with its first lock, so what is asked for in one transaction shares
-- what was read before that, which is newer than the receipts that the lanes' owner knows.
CREATE OR REPLACE FUNCTION outbox_fresh_moment() RETURNS outbox_moment
LANGUAGE plpgsql AS $$
DECLARE
	shared text;
	fresh outbox_moment;
BEGIN
	IF pg_current_xact_id_if_assigned() IS NULL THEN
		fresh.snapshot := pg_current_snapshot();
		fresh.log_end := outbox_log_end();
	ELSE
		shared := current_setting('outbox.moment', true);
		IF coalesce(shared, '') = '' THEN
			RAISE EXCEPTION 'outbox_settle_and_claim() is called after something was written in this transaction'
				USING ERRCODE = 'OB003';
		END IF;
		fresh.snapshot := split_part(shared, ' ', 1)::pg_snapshot;
		fresh.log_end := split_part(shared, ' ', 2)::bigint;
	END IF;
	RETURN fresh;
END $$;

-- The first statement of a transaction for several lanes. p_settles: one of them has something to settle.
CREATE OR REPLACE FUNCTION outbox_share_moment(p_settles boolean) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	snapshot pg_snapshot := pg_current_snapshot();
BEGIN
	PERFORM set_config('outbox.moment', snapshot::text || ' ' || outbox_log_end(), true);
	PERFORM outbox_prepare_commit(p_settles);
	PERFORM pg_current_xact_id(); -- from now on everybody knows that the moment is shared, and the commit prepared
END $$;

-- ---- the whole call ----------------------------------------------------------------------------------------

-- p_ahead: the rows that were read ahead, if the caller knows that the lane has detours. Then only the other rows of the claim
-- are returned.
CREATE OR REPLACE FUNCTION outbox_settle_and_claim(q outbox_request, o outbox_outcomes, p_ahead outbox_ahead)
RETURNS SETOF outbox_claimed
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET lock_timeout = '10s' SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
	fresh outbox_moment;
	last outbox_receipt;
	succ outbox_receipt;
	v outbox_view;
	now timestamptz;
	claim record;
	claimed bigint := 0;
	ahead bigint := 0;
BEGIN
	IF pg_current_xact_id_if_assigned() IS NULL THEN
		PERFORM outbox_prepare_commit(o.count > 0);
	END IF;
	fresh := outbox_fresh_moment();
	last := outbox_fence(q);
	now := outbox_now(q.now);
	v := outbox_lane_view(q);
	IF last.n <> q.n THEN
		RETURN QUERY SELECT * FROM outbox_claim_again(last, now, v);
		RETURN NEXT outbox_claim_head(last, now, v.paused, v.version <> q.version,
			outbox_next_due(q.target, q.lane, now));
		RETURN;
	END IF;
	fresh.xid := pg_current_xact_id();
	PERFORM outbox_check_ahead(last, fresh.log_end, fresh.snapshot);

	succ := outbox_settle(q, last, o, v.hold, now);
	IF cardinality(o.seqs) > 0 OR last.claim_detours > 0 THEN
		v := outbox_lane_view(q); -- it may have other detours now
	END IF;
	IF outbox_may_claim(q, v) THEN
		claim := outbox_claim(succ, q, last, v, fresh, now, p_ahead);
		succ := claim.succ;
		claimed := claim.claimed;
	END IF;
	IF claimed = 0 AND last.claim_count = 0 AND NOT outbox_may_claim(q, v) THEN
		succ := last;
	ELSIF claimed = 0 THEN
		succ := outbox_pass(last, succ, fresh);
	ELSE
		PERFORM outbox_append_receipt(succ);
		IF claim.read_ahead THEN
			ahead := claimed - succ.claim_detours;
		END IF;
		IF cardinality(claim.seqs) > 0 THEN
			RETURN QUERY SELECT * FROM outbox_read_claim(q.target, claim.seqs, claim.flags);
		END IF;
	END IF;
	IF v.detours AND succ.n <> last.n THEN
		PERFORM outbox_pass_ahead(succ);
	END IF;
	RETURN NEXT outbox_claim_head(succ, now, v.paused, v.version <> q.version,
		CASE WHEN v.detours THEN outbox_next_due(q.target, q.lane, now) END, ahead);
END $$;

-- As programs of version 4 call it, which have not looked before.
CREATE OR REPLACE FUNCTION outbox_settle_and_claim(q outbox_request, o outbox_outcomes) RETURNS SETOF outbox_claimed
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	idle outbox_claimed;
BEGIN
	IF o.count = 0 THEN
		idle := outbox_look_first(q);
		IF idle.head IS NOT NULL THEN
			RETURN NEXT idle;
			RETURN;
		END IF;
	END IF;
	RETURN QUERY SELECT * FROM outbox_next_batch(q.target, q.lane, q.owner, q.n, q.token, q.new_token, q.version, q.max, q.max_bytes,
		q.now, q.ahead, q.ahead_first, q.ahead_last, o.count, o.first, o.last, o.last_kept, o.seqs, o.outcomes, o.attempts, o.delays,
		o.dues, o.suspects, o.errors, '{}', '{}', '{}');
END $$;

-- As programs of versions 1 to 3 call it. They may not read ahead for a target with bands, because they do not know
-- where its bands are now.
CREATE OR REPLACE FUNCTION outbox_advance(p_target text, p_lane integer, p_owner text, p_n bigint, p_token bigint, p_new_token bigint,
	p_version bigint, p_outcomes outbox_outcomes, p_max bigint, p_max_bytes bigint, p_now timestamptz,
	p_ahead bigint DEFAULT 0, p_ahead_first bigint DEFAULT 0, p_ahead_last bigint DEFAULT 0)
RETURNS SETOF outbox_claimed
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT * FROM outbox_settle_and_claim(ROW(p_target, p_lane, p_owner, p_n, p_token, p_new_token, p_version, p_max, p_max_bytes,
		p_now, CASE WHEN EXISTS (SELECT FROM outbox_route r WHERE r.target = p_target AND r.version = p_version AND r.bands IS NOT NULL)
			THEN 0 ELSE p_ahead END, p_ahead_first, p_ahead_last)::outbox_request, p_outcomes)
$$;
