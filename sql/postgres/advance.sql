-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: settle the claim in flight and claim the next batch, with one receipt, in four steps.
--
-- 1. Look: an idle lane takes no lock, no transaction number and writes nothing.
-- 2. Fence: lock the lane; its last receipt must be the caller's.
-- 3. Settle: write the outcomes of the claim in flight (settle.sql).
-- 4. Claim: choose the next messages. If there are only new log rows, they are counted, recorded in the receipt and
--    returned as they are read; if the caller has read them ahead (src/store/postgres/readahead.c), only recorded.
--
-- variable_conflict: users may add columns to the log that have the name of a variable.

-- How many numbers of the log one look covers; a lane that finds nothing in them moves its position and looks further,
-- up to this many times in one call.
CREATE OR REPLACE FUNCTION outbox_scan_max() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 20000::bigint $$;

CREATE OR REPLACE FUNCTION outbox_scan_rounds() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 25 $$;

-- How far the log may get ahead of an idle lane before an empty receipt moves the lane on.
CREATE OR REPLACE FUNCTION outbox_ahead_max() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 1000::bigint $$;

CREATE OR REPLACE FUNCTION outbox_lane_view(q outbox_request) RETURNS outbox_view
LANGUAGE plpgsql STABLE AS $$
DECLARE
	v outbox_view;
	fault text;
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
		r.bands
	INTO v
	FROM outbox_target t LEFT JOIN outbox_route r ON r.target = t.name AND r.version = q.version
	WHERE t.name = q.target;
	IF NOT FOUND THEN
		PERFORM outbox_no_target(q.target);
	END IF;
	SELECT l.refused, o.lane + 1 INTO fault, there FROM outbox_lane l
		CROSS JOIN (SELECT n.lane FROM outbox_lane n WHERE n.target = q.target ORDER BY n.target DESC, n.lane DESC LIMIT 1) o
		WHERE l.target = q.target AND l.lane = q.lane;
	IF fault IS NOT NULL OR there <> v.lanes THEN
		RAISE EXCEPTION '%', coalesce(fault, outbox_lanes_fault(q.target, v.lanes)) USING ERRCODE = 'OB004';
	END IF;
	RETURN v;
END $$;

-- At every look: is the lane's position beyond the end of the database?
CREATE OR REPLACE FUNCTION outbox_check_ahead(p outbox_receipt, log_end bigint, now_at pg_snapshot) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF p.cur_seq > log_end OR p.cur_xid >= pg_snapshot_xmax(now_at) THEN
		RAISE EXCEPTION '%', outbox_position_ahead(p, log_end, now_at) USING ERRCODE = 'OB004';
	END IF;
END $$;

-- When a window opens: was the log's numbering restarted? And once per session, which has one server: is it this server's?
CREATE OR REPLACE FUNCTION outbox_check_window(p outbox_receipt) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
	fault text := outbox_window_fault(p, p.prev_seq, p.prev_xid, 1000);
BEGIN
	IF fault IS NULL AND current_setting('outbox.server_of', true) IS DISTINCT FROM current_schema() THEN
		fault := outbox_cluster_fault(p);
		PERFORM set_config('outbox.server_of', current_schema(), false);
	END IF;
	IF fault IS NOT NULL THEN
		RAISE EXCEPTION '%', fault USING ERRCODE = 'OB004';
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
			v.types, v.kind, v.published_only, v.bands, 1, outbox_scan_max(), CASE WHEN v.detours THEN last.target END));
END $$;

-- A claim that was made before and whose answer was lost. A row of the log that became a dead letter while in flight
-- is still part of it.
CREATE OR REPLACE FUNCTION outbox_claim_again(last outbox_receipt, p_now timestamptz, v outbox_view) RETURNS SETOF outbox_claimed
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
			v.types, v.kind, v.published_only, v.bands, 9223372036854775807, 9223372036854775807) w
		WHERE w.seq <= last.claim_end
			AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = last.target AND d.seq = w.seq
				AND NOT (coalesce(d.dead_n = last.n, false) AND d.state = 'pending'))
	) i;
	RETURN QUERY SELECT * FROM outbox_read_claim(last.target, coalesce(seqs, '{}'), flags);
END $$;

-- Choose a claim: picks of the detours and rows of the window, merged by seq and cut.
CREATE OR REPLACE FUNCTION outbox_choose(INOUT succ outbox_receipt, v outbox_view, p_late xid8[], p_max bigint, p_max_bytes bigint,
	p_now timestamptz, OUT seqs bigint[], OUT flags integer[])
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
#variable_conflict use_variable
DECLARE
	picks bigint[];
	suspects boolean[];
	rows bigint[];
	log_cut bigint;
	stopped boolean;
BEGIN
	SELECT coalesce(array_agg(p.seq), '{}'), coalesce(array_agg(p.suspect), '{}') INTO picks, suspects
		FROM outbox_picks(succ.target, succ.lane, v.hold, v.unordered, succ.cur, p_now, p_max) p;
	SELECT coalesce(array_agg(w.seq), '{}') INTO rows FROM outbox_window(greatest(succ.pos, succ.floor), succ.prev, succ.prev_seq,
		p_late, succ.cur, succ.cur_seq, succ.lane, v.lanes, v.types, v.kind, v.published_only, v.bands,
		p_max, outbox_scan_max(), CASE WHEN v.detours THEN succ.target END) w;
	-- the union has up to p_max rows of each half: what comes after the first p_max is not known completely
	IF cardinality(rows) >= p_max THEN
		rows := ARRAY(SELECT r FROM unnest(rows) r ORDER BY r LIMIT p_max);
		log_cut := rows[p_max];
	ELSE
		log_cut := outbox_scanned(greatest(succ.pos, succ.floor), succ.prev_seq, succ.cur_seq, outbox_scan_max());
	END IF;

	WITH items AS (
		SELECT p.seq, 1 AS flags, p.suspect,
			coalesce((SELECT outbox_weight(m.payload, m.payload_bin, m.headers) FROM outbox_message m WHERE m.seq = p.seq),
				(SELECT outbox_weight(k.payload, k.payload_bin, k.headers) FROM outbox_kept k WHERE k.seq = p.seq), 0) AS size
		FROM unnest(picks, suspects) p(seq, suspect)
		WHERE p.seq <= log_cut OR NOT EXISTS (SELECT FROM outbox_detour d
			WHERE d.target = succ.target AND d.seq = p.seq AND d.ahead)
		UNION ALL
		SELECT m.seq, CASE WHEN b.blocked THEN 4 ELSE 0 END, false,
			CASE WHEN b.blocked THEN 0 ELSE outbox_weight(m.payload, m.payload_bin, m.headers) END
		FROM unnest(rows) r JOIN outbox_message m ON m.seq = r
		CROSS JOIN LATERAL (SELECT v.detours AND m.key IS NOT NULL AND NOT v.unordered
			AND outbox_is_blocked(succ.target, m.key, m.seq, v.hold, picks, p_now) AS blocked) b
	), numbered AS (
		SELECT i.*, row_number() OVER w AS i, sum(i.size) OVER w AS bytes,
			coalesce(bool_or(i.suspect) OVER (ORDER BY i.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false)
				AS behind_suspect
		FROM items i WINDOW w AS (ORDER BY i.seq ROWS UNBOUNDED PRECEDING)
	), stop AS (
		SELECT min(n.i) AS at FROM numbered n
		WHERE n.i > p_max OR n.behind_suspect
			OR (n.i > 1 AND (n.suspect OR (n.flags <> 4 AND n.bytes > p_max_bytes)))
	)
	SELECT array_agg(n.seq ORDER BY n.seq), array_agg(n.flags ORDER BY n.seq), stop.at IS NOT NULL
	INTO seqs, flags, stopped
	FROM stop LEFT JOIN numbered n ON stop.at IS NULL OR n.i < stop.at GROUP BY stop.at;

	IF seqs[1] IS NULL THEN
		seqs := '{}';
		flags := '{}';
	END IF;
	UPDATE outbox_detour d SET state = 'sending', owner = succ.owner, last_status_at = p_now
		FROM unnest(seqs, flags) u(seq, flags)
		WHERE u.flags = 1 AND d.target = succ.target AND d.seq = u.seq;
	succ.claim_count := cardinality(seqs);
	succ.claim_detours := (SELECT count(*) FROM unnest(flags) f WHERE f = 1);
	succ.claim_seq := coalesce(seqs[1], 0);
	succ.claim_last := coalesce(seqs[succ.claim_count], 0);
	succ.claim_end := greatest(succ.pos, CASE WHEN stopped THEN succ.claim_last ELSE log_cut END);
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

CREATE OR REPLACE FUNCTION outbox_may_claim(q outbox_request, v outbox_view) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT (q).max > 0 AND NOT (v).paused AND (v).version = (q).version
$$;

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
	last := outbox_last_receipt(q.target, q.lane);
	IF (last.n = q.n AND last.token = q.token) OR (last.n = q.n + 1 AND last.token = q.new_token) THEN
		RETURN last;
	END IF;
	RAISE EXCEPTION 'target %, lane %: receipt % is no longer the last one (% is); another relay has the lane',
		q.target, q.lane, q.n, last.n USING ERRCODE = 'OB005';
END $$;

-- 4. Choose what comes next. claimed: how many; seqs: which, with their flags; NULL: all rows of the lane after low, up to
-- claim_last, every: and all rows there belong to it. read_ahead: the caller has them. If there are none, the position
-- moves past the rows of other lanes.
CREATE OR REPLACE FUNCTION outbox_claim(INOUT succ outbox_receipt, q outbox_request, last outbox_receipt, v outbox_view,
	fresh outbox_moment, now timestamptz, OUT claimed bigint, OUT read_ahead boolean, OUT low bigint, OUT every boolean,
	OUT seqs bigint[], OUT flags integer[])
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
	late xid8[];
	chosen record;
	straight boolean;
	high bigint;
	weight bigint;
	prev pg_snapshot;
	cur pg_snapshot;
	lane integer := q.lane;
	lanes integer := v.lanes;
	types text[] := v.types;
	kind text := v.kind;
	published_only boolean := v.published_only;
	bands bigint[] := v.bands;
	max bigint;
	rounds integer := 0;
	done boolean;
BEGIN
	read_ahead := false;
	LOOP
		IF succ.pos = 0 THEN
			PERFORM outbox_check_window(succ);
			succ.cur := fresh.snapshot; -- a new window, or one of which nothing is settled yet
			succ.cur_seq := fresh.log_end;
			succ.cur_xid := fresh.xid;
		END IF;
		late := NULL;
		IF succ.pos < succ.prev_seq THEN
			late := outbox_late(succ.prev, succ.prev_xid, succ.cur);
		END IF;
		max := CASE WHEN outbox_is_cautious(succ) THEN 1 ELSE q.max END;
		-- Straight along the log, the usual case, in two looks: first the totals, then the rows, so that these
		-- are copied only once. If there are detours, late rows or too many bytes, the rows are chosen.
		low := greatest(succ.pos, succ.floor, succ.prev_seq);
		high := outbox_reach(low, 0, succ.cur_seq, outbox_scan_max());
		straight := NOT v.detours AND late IS NULL;
		-- Rows read ahead were read after the claim of the last receipt, in its window: they are the next ones if the
		-- lane has not moved. They are unchanged, unless somebody amended one.
		IF straight AND q.ahead BETWEEN 1 AND max AND NOT outbox_any_amended(q.ahead_first, q.ahead_last)
				AND succ.pos > 0 AND succ.pos = last.claim_end
				AND succ.cur_xid = last.cur_xid THEN
			read_ahead := true;
			claimed := q.ahead;
			succ.claim_seq := q.ahead_first;
			succ.claim_last := q.ahead_last;
		ELSIF straight THEN
			-- By way of text: taken out of a row, a snapshot is packed, and would be unpacked for every message.
			prev := succ.prev::text;
			cur := succ.cur::text;
			SELECT count(*), coalesce(min(c.seq), 0), coalesce(max(c.seq), 0), sum(c.size)
			INTO claimed, succ.claim_seq, succ.claim_last, weight
			FROM (SELECT m.seq, outbox_weight(m.payload, m.payload_bin, m.headers) AS size
				FROM outbox_stretch(low, high, prev, cur, lane, lanes, types, kind, published_only, false, bands) m
				ORDER BY m.seq LIMIT max) c;
			straight := claimed <= 1 OR weight <= q.max_bytes;
		END IF;
		IF NOT straight THEN
			chosen := outbox_choose(succ, v, late, max, q.max_bytes, now);
			succ := chosen.succ;
			claimed := succ.claim_count;
			IF claimed > 0 THEN
				seqs := chosen.seqs;
				flags := chosen.flags;
			END IF;
		ELSIF claimed > 0 THEN
			succ.claim_count := claimed;
			succ.claim_end := CASE WHEN claimed >= max THEN succ.claim_last WHEN high < succ.cur_seq THEN high
				ELSE 9223372036854775807 END;
			IF read_ahead THEN
				succ.claim_end := succ.claim_last; -- nobody looked further
			END IF;
			every := succ.claim_last - low = claimed; -- as many as there are numbers: no need to filter again
		ELSE
			succ.claim_end := outbox_scanned(low, 0, succ.cur_seq, outbox_scan_max());
		END IF;
		EXIT WHEN claimed > 0;
		-- Only rows of other lanes. At the end of a window that was left open, go on with a new one.
		IF succ.claim_end < 9223372036854775807 THEN
			succ.pos := succ.claim_end;
			rounds := rounds + 1;
			EXIT WHEN rounds >= outbox_scan_rounds();
		ELSE
			done := succ.cur_xid = fresh.xid;
			succ.prev := succ.cur;
			succ.prev_seq := succ.cur_seq;
			succ.prev_xid := succ.cur_xid;
			succ.pos := 0;
			succ.caution_end := 0;
			EXIT WHEN done;
		END IF;
	END LOOP;
END $$;

-- Nothing was claimed. The new position is recorded if a receipt is written anyway, or if it has moved far. Returns the
-- receipt that is the last one then.
CREATE OR REPLACE FUNCTION outbox_pass(last outbox_receipt, succ outbox_receipt, fresh outbox_moment) RETURNS outbox_receipt
LANGUAGE plpgsql AS $$
BEGIN
	IF last.claim_count = 0 AND succ.pos = last.pos AND last.cur::text = last.prev::text
			AND succ.prev_seq - last.prev_seq <= outbox_ahead_max()
			AND NOT outbox_much_is_late(outbox_late(last.prev, last.prev_xid, fresh.snapshot), last.floor, last.prev_seq) THEN
		RETURN last;
	END IF;
	succ.claim_end := succ.pos;
	PERFORM outbox_append_receipt(succ);
	RETURN succ;
END $$;

-- ---- the whole call ----------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION outbox_settle_and_claim(q outbox_request, o outbox_outcomes) RETURNS SETOF outbox_claimed
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET lock_timeout = '10s' SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
	idle outbox_claimed;
	fresh outbox_moment;
	last outbox_receipt;
	succ outbox_receipt;
	v outbox_view;
	now timestamptz;
	claim record;
	claimed bigint := 0;
	ahead bigint := 0;
	returned bigint;
	low bigint;
	high bigint;
	prev pg_snapshot;
	cur pg_snapshot;
	lane integer := q.lane;
	lanes integer;
	types text[];
	kind text;
	published_only boolean;
	bands bigint[];
	every boolean;
BEGIN
	IF o.count = 0 THEN
		idle := outbox_look_first(q);
		IF idle.head IS NOT NULL THEN
			RETURN NEXT idle;
			RETURN;
		END IF;
	END IF;

	-- In this order, and the transaction's number last, which it gets with its first lock: see outbox_receipt. They are
	-- newer than those of the last receipt, if that is still the one which the caller knows.
	fresh.snapshot := pg_current_snapshot();
	fresh.log_end := outbox_log_end();
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
	-- A claim need not be durable before its messages are sent: if the server crashes and forgets it, the lane is
	-- fenced and they are sent again. What is settled must be; and so must the messages, whose publishers may not have
	-- waited for the disk (synchronous_commit off): this commit waits for them then, also where ours would not.
	IF o.count = 0 AND pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() THEN
		PERFORM set_config('synchronous_commit', 'off', true);
	ELSE
		PERFORM outbox_commit_durably();
	END IF;

	succ := outbox_settle(q, last, o, v.hold, now);
	IF cardinality(o.seqs) > 0 OR last.claim_detours > 0 THEN
		v := outbox_lane_view(q); -- it may have other detours now
	END IF;
	IF outbox_may_claim(q, v) THEN
		claim := outbox_claim(succ, q, last, v, fresh, now);
		succ := claim.succ;
		claimed := claim.claimed;
	END IF;
	IF claimed = 0 THEN
		succ := outbox_pass(last, succ, fresh);
	ELSE
		PERFORM outbox_append_receipt(succ);
		IF claim.read_ahead THEN
			ahead := claimed;
		ELSIF claim.seqs IS NOT NULL THEN
			RETURN QUERY SELECT * FROM outbox_read_claim(q.target, claim.seqs, claim.flags);
		ELSE
			prev := succ.prev::text; -- by way of text: see outbox_claim()
			cur := succ.cur::text;
			low := claim.low;
			high := succ.claim_last;
			lanes := v.lanes;
			types := v.types;
			kind := v.kind;
			published_only := v.published_only;
			bands := v.bands;
			every := claim.every;
			RETURN QUERY
			SELECT NULL::bigint[], m.seq, m.id, m.type, m.key, m.kind, m.published, m.created_at, m.event_time, m.due_at,
				m.expires_at, m.priority, m.content_type, m.source, m.subject, m.topic, m.correlation_id, m.causation_id,
				m.traceparent, m.headers, m.payload, m.payload_bin, 0, NULL::timestamptz, 0
			FROM outbox_stretch(low, high, prev, cur, lane, lanes, types, kind, published_only, every, bands) m
			ORDER BY m.seq;
			GET DIAGNOSTICS returned = ROW_COUNT;
			IF returned <> claimed THEN
				RAISE EXCEPTION 'target %, lane %: messages were removed while they were read', q.target, q.lane
					USING ERRCODE = 'serialization_failure';
			END IF;
		END IF;
	END IF;
	IF v.detours AND succ.n <> last.n THEN
		PERFORM outbox_pass_ahead(succ);
	END IF;
	RETURN NEXT outbox_claim_head(succ, now, v.paused, v.version <> q.version,
		CASE WHEN v.detours THEN outbox_next_due(q.target, q.lane, now) END, ahead);
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
