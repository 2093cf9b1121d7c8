-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: retention.
--
-- A message may be removed when each of its deliveries may: delivered or discarded before one time, or failed
-- before another. For deliveries without a row the lane's receipts say when: everything that the position of the
-- last receipt before that time has settled is old enough. So one receipt per lane and target, the cut, decides
-- for nearly every message. Messages are removed in bounded batches, oldest first; receipts follow, oldest first,
-- once no message is left whose state only they record, and never a lane's last one.
--
-- A lane that gets little moves seldom, and one without a relay never moves. So for a message that a cut does not cover,
-- the question is whether the target gets it at all: what was never meant for it need not wait for it. Nothing is
-- written for that and no lane is locked. It is checked for each message that is visible, so one that becomes visible
-- late is judged when it is there. Changing a routing takes the janitor's lock (target.sql): what is not routed to a
-- target stays so during a purge. A message that no target gets, also because all began later, is removed by its own age.
--
-- One failed message that is kept forever must not keep a million receipts: what its other targets' receipts
-- say about it is written as delivered detours, and then the receipts may be removed.

-- How many messages one call examines, besides those that it finds.
CREATE OR REPLACE FUNCTION outbox_purge_scan() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 2000::bigint $$;

-- Where a lane was before a time: its last receipt settled earlier, or NULL. By binary search, because a lane may
-- have a million receipts; exact as long as the clock was not set back.
CREATE OR REPLACE FUNCTION outbox_receipt_before(p_target text, p_lane integer, p_time timestamptz) RETURNS outbox_receipt
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	low bigint; -- everything before it is older
	high bigint; -- nothing behind it is
	middle bigint;
	at timestamptz;
	found outbox_receipt;
BEGIN
	SELECT min(r.n), max(r.n) INTO low, high FROM outbox_receipt r WHERE r.target = p_target AND r.lane = p_lane;
	WHILE low <= high LOOP
		middle := low + (high - low) / 2;
		SELECT r.settled_at INTO at FROM outbox_receipt r
			WHERE r.target = p_target AND r.lane = p_lane AND r.n = middle;
		IF at < p_time THEN
			low := middle + 1;
		ELSE
			high := middle - 1;
		END IF;
	END LOOP;
	SELECT * INTO found FROM outbox_receipt r WHERE r.target = p_target AND r.lane = p_lane AND r.n = low - 1;
	RETURN found;
END $$;

-- No message that a position settles has a higher seq. A band that was added later has a floor.
CREATE OR REPLACE FUNCTION outbox_highest(p outbox_receipt) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT greatest((p).prev_seq, (p).pos, (p).floor) $$;

CREATE OR REPLACE FUNCTION outbox_cuts(p_before timestamptz) RETURNS outbox_cut[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	cuts outbox_cut[] := '{}';
	c outbox_cut;
BEGIN
	FOR c.target, c.lane, c.start IN SELECT t.name, l.lane, t.start
			FROM outbox_target t JOIN outbox_lane l ON l.target = t.name LOOP
		c.bound := outbox_receipt_before(c.target, c.lane, p_before);
		c.high := coalesce(outbox_highest(c.bound), 0);
		cuts := cuts || c;
	END LOOP;
	RETURN cuts;
END $$;

-- The cuts, with what is needed to decide whether their targets get a message.
CREATE OR REPLACE FUNCTION outbox_wishes(p_cuts outbox_cut[])
RETURNS TABLE (target text, lane integer, start pg_snapshot, bound outbox_receipt, last outbox_receipt, version bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT c.target, c.lane, c.start, c.bound, outbox_last_receipt(c.target, c.lane), t.version
	FROM unnest(p_cuts) c JOIN outbox_target t ON t.name = c.target
$$;

-- Did a target get a message that its cut does not cover, or will it? What its lane has not settled is judged by the
-- current routing, or by that of the claim in flight; what it has settled since the cut, by any routing of that time.
CREATE OR REPLACE FUNCTION outbox_concerns(m outbox_message, p_target text, bound outbox_receipt, last outbox_receipt, version bigint)
RETURNS boolean
LANGUAGE sql STABLE AS $$
	SELECT EXISTS (SELECT FROM outbox_route r WHERE r.target = p_target
		AND CASE WHEN outbox_is_settled((m).xid, (m).seq, last)
			THEN r.version BETWEEN coalesce((bound).route_version, 0) AND (last).route_version
			ELSE r.version = outbox_concerns.version OR (r.version = (last).route_version AND (last).claim_count > 0) END
		AND outbox_route_takes((m).type, (m).kind, (m).published, r)
		AND (r.bands IS NULL OR outbox_bands_take(r.bands, (m).priority, (m).seq))
		AND (r.headers IS NULL OR outbox_headers_take(r.headers, (m).headers)))
$$;

-- May these messages be removed? waiting: a lane is not far enough; otherwise a detour keeps it, or its age.
CREATE OR REPLACE FUNCTION outbox_judge(p_seqs bigint[], p_cuts outbox_cut[], p_delivered timestamptz, p_failed timestamptz)
RETURNS TABLE (seq bigint, old boolean, failed boolean, waiting boolean)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	WITH wishes AS MATERIALIZED (SELECT * FROM outbox_wishes(p_cuts))
	SELECT j.seq, NOT bool_or(j.wanted OR j.keeps)
			AND coalesce(bool_or(j.state = 'failed') OR bool_and(j.covered) OR min(j.created_at) < p_delivered, false),
		coalesce(bool_or(j.state = 'failed'), false), bool_or(j.wanted)
	FROM (SELECT m.seq, m.created_at, d.state, d.state IS NOT NULL OR c.covered AS covered,
			d.state IS NULL AND NOT c.covered AND NOT pg_visible_in_snapshot(m.xid, w.start)
				AND outbox_concerns(m, w.target, w.bound, w.last, w.version) AS wanted,
			CASE d.state WHEN 'failed' THEN coalesce(d.last_status_at >= p_failed, true)
				WHEN 'delivered' THEN coalesce(d.last_status_at >= p_delivered, true)
				WHEN 'discarded' THEN coalesce(d.last_status_at >= p_delivered, true)
				ELSE d.state IS NOT NULL END AS keeps
		FROM unnest(p_seqs) s(seq) JOIN outbox_message m ON m.seq = s.seq
		JOIN wishes w ON w.lane = m.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes')
		CROSS JOIN LATERAL (SELECT
			((w.bound).n IS NOT NULL AND outbox_is_settled(m.xid, m.seq, w.bound)) AS covered OFFSET 0) c
		LEFT JOIN outbox_detour d ON d.target = w.target AND d.seq = m.seq) j
	GROUP BY j.seq
$$;

-- The place before the first message that was published at a time or later, no lower than p_low. By binary search: times
-- ascend, except those that applications set themselves.
CREATE OR REPLACE FUNCTION outbox_before_young(p_low bigint, p_time timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	low bigint := p_low; -- everything up to it is older
	high bigint := outbox_log_end(); -- nothing behind it is
	middle bigint;
	probe record;
BEGIN
	WHILE low < high LOOP
		middle := low + (high - low) / 2;
		SELECT m.seq, m.created_at INTO probe FROM outbox_message m WHERE m.seq > middle ORDER BY m.seq LIMIT 1;
		IF probe.created_at < p_time THEN
			low := probe.seq;
		ELSE
			high := middle;
		END IF;
	END LOOP;
	RETURN low;
END $$;

-- The next messages that may be removed, after p_from. seen: how far this call has looked, 0: to the end. whole:
-- including those in partitions that may be dropped.
CREATE OR REPLACE FUNCTION outbox_find_victims(p_cuts outbox_cut[], p_delivered timestamptz, p_failed timestamptz,
	p_through bigint, p_from bigint, p_limit bigint, p_whole boolean,
	OUT victims bigint[], OUT failures bigint[], OUT survivors bigint[], OUT more boolean, OUT seen bigint)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
#variable_conflict use_variable
DECLARE
	scan bigint := outbox_purge_scan() + p_limit;
	highest bigint := 0;
	seqs bigint[] := '{}';
BEGIN
	IF p_delivered IS NOT NULL THEN
		-- no later message can be old enough, except failed ones
		SELECT least(outbox_before_young(coalesce(max(l.low), 0), p_delivered), p_through) INTO highest
			FROM (SELECT min(c.high) AS low FROM unnest(p_cuts) c GROUP BY c.lane) l;
		IF outbox_is_partitioned() THEN
			seqs := outbox_scan_partitions(p_cuts, p_delivered, p_through, p_from, highest, scan, p_whole);
		ELSE
			seqs := ARRAY(SELECT m.seq FROM outbox_message m WHERE m.seq > p_from AND m.seq <= highest
				ORDER BY m.seq LIMIT scan);
		END IF;
	END IF;
	more := cardinality(seqs) = scan;
	IF NOT more AND p_failed IS NOT NULL THEN -- failed ones further on are found by their own index
		seqs := seqs || ARRAY(SELECT DISTINCT d.seq FROM outbox_target t CROSS JOIN LATERAL (
				SELECT f.seq FROM outbox_detour f WHERE f.target = t.name AND f.state = 'failed'
					AND f.seq > greatest(p_from, highest) AND f.seq <= p_through
					AND f.last_status_at < p_failed ORDER BY f.seq LIMIT scan) d
			ORDER BY d.seq LIMIT scan);
		more := cardinality(seqs) >= scan;
	END IF;
	seen := seqs[cardinality(seqs)];
	SELECT coalesce(array_agg(j.seq ORDER BY j.seq) FILTER (WHERE j.old), '{}'),
		coalesce(array_agg(j.seq) FILTER (WHERE j.old AND j.failed), '{}'),
		coalesce(array_agg(j.seq) FILTER (WHERE NOT j.old AND NOT j.waiting), '{}')
	INTO victims, failures, survivors FROM outbox_judge(seqs, p_cuts, p_delivered, p_failed) j;
	IF cardinality(victims) > p_limit THEN
		victims := victims[:p_limit];
		seen := victims[p_limit];
		more := true;
		failures := ARRAY(SELECT f FROM unnest(failures) f WHERE f <= seen);
		survivors := ARRAY(SELECT f FROM unnest(survivors) f WHERE f <= seen);
	END IF;
	IF NOT more THEN
		seen := 0;
	END IF;
END $$;

-- Messages that stay because of a detour. What only receipts record about their other deliveries gets a row.
CREATE OR REPLACE FUNCTION outbox_write_down(p_seqs bigint[], p_cuts outbox_cut[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	x record;
	m outbox_message;
	c outbox_cut;
	settled record;
BEGIN
	FOR x IN SELECT o AS m, u AS c FROM unnest(p_seqs) s(seq) JOIN outbox_message o ON o.seq = s.seq
			JOIN unnest(p_cuts) u ON u.lane = o.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes')
			WHERE (u.bound).n IS NOT NULL AND NOT pg_visible_in_snapshot(o.xid, u.start)
				AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = u.target AND d.seq = o.seq) LOOP
		m := x.m;
		c := x.c;
		CONTINUE WHEN NOT outbox_is_settled(m.xid, m.seq, c.bound);
		settled := outbox_settled_by(m.xid, m.seq, c.bound);
		CONTINUE WHEN settled.routed_by IS NULL OR NOT outbox_is_routed(m, c.target, settled.routed_by);
		INSERT INTO outbox_detour (target, seq, id, key, lane, state, last_status_at, owner)
			VALUES (c.target, m.seq, m.id, m.key, c.lane, 'delivered', (settled.receipt).settled_at, (settled.receipt).owner)
			ON CONFLICT DO NOTHING;
	END LOOP;
END $$;

-- The oldest message whose state only a receipt of this lane records. If many are not meant for the target, it
-- stops at one of them: then receipts stay a little longer.
CREATE OR REPLACE FUNCTION outbox_first_bare(c outbox_cut, p_lanes integer) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	last outbox_receipt := outbox_last_receipt(c.target, c.lane);
	t outbox_target;
	m outbox_message;
	looked integer := 0;
BEGIN
	SELECT * INTO t FROM outbox_target o WHERE o.name = c.target;
	FOR m IN SELECT * FROM outbox_message o WHERE o.slot % p_lanes = c.lane AND NOT EXISTS (
			SELECT FROM outbox_detour d WHERE d.target = c.target AND d.seq = o.seq) ORDER BY o.seq LOOP
		looked := looked + 1;
		IF looked > 1000 OR (outbox_place(m, t, last)).state IS NOT NULL THEN
			RETURN m.seq;
		END IF;
	END LOOP;
	RETURN 9223372036854775807;
END $$;

-- Of each lane, oldest first and no more than p_limit; a message's receipt is identified with the help of the previous
-- one.
CREATE OR REPLACE FUNCTION outbox_purge_receipts(p_cuts outbox_cut[], p_limit bigint,
	OUT receipts bigint, OUT more boolean)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	lanes integer := (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	c outbox_cut;
	bare bigint;
	first bigint;
	stop bigint;
	removed bigint;
BEGIN
	receipts := 0;
	more := false;
	FOREACH c IN ARRAY p_cuts LOOP
		SELECT min(r.n) INTO first FROM outbox_receipt r WHERE r.target = c.target AND r.lane = c.lane;
		CONTINUE WHEN (c.bound).n IS NULL OR (c.bound).n <= first;
		bare := outbox_first_bare(c, lanes);
		SELECT min(r.n) INTO stop FROM (SELECT o.* FROM outbox_receipt o
				WHERE o.target = c.target AND o.lane = c.lane ORDER BY o.n LIMIT p_limit) r
			WHERE outbox_highest(r) >= bare;
		-- the last one before the time stays, and so does what identifies the oldest bare message's receipt
		stop := least(stop - 1, (c.bound).n, first + p_limit);
		DELETE FROM outbox_receipt r WHERE r.target = c.target AND r.lane = c.lane AND r.n < stop;
		GET DIAGNOSTICS removed = ROW_COUNT;
		receipts := receipts + removed;
		more := more OR removed >= p_limit;
	END LOOP;
END $$;

-- Remove messages and what belongs to them. The lanes of failed ones are locked.
CREATE OR REPLACE FUNCTION outbox_remove(p_victims bigint[], p_now timestamptz, OUT messages bigint, OUT detours bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	x record;
BEGIN
	PERFORM set_config('outbox.janitor', 'on', true);
	detours := 0;
	-- With hold, what was parked behind a failed one may go on when that is removed.
	FOR x IN WITH gone AS (
			DELETE FROM outbox_detour d USING outbox_target t, unnest(p_victims) v(seq)
			WHERE d.target = t.name AND d.seq BETWEEN p_victims[1] AND p_victims[cardinality(p_victims)] AND d.seq = v.seq
			RETURNING d.target, d.key, d.state, t.hold)
			SELECT g.target, count(*) AS count, array_agg(g.key) FILTER (WHERE g.state = 'failed' AND g.hold) AS keys
			FROM gone g GROUP BY g.target LOOP
		detours := detours + x.count;
		IF x.keys IS NOT NULL THEN
			PERFORM outbox_promote(x.target, x.keys, true, p_now);
		END IF;
	END LOOP;
	IF outbox_is_partitioned() THEN
		DELETE FROM outbox_id i USING outbox_message m WHERE m.seq = ANY (p_victims) AND i.id = m.id;
	END IF;
	DELETE FROM outbox_cancelled c WHERE c.seq = ANY (p_victims);
	DELETE FROM outbox_message m WHERE m.seq = ANY (p_victims);
	GET DIAGNOSTICS messages = ROW_COUNT;
	PERFORM set_config('outbox.janitor', '', true);
END $$;

-- A relay's own retention gives way to another janitor; an operator's purge waits for it.
CREATE OR REPLACE FUNCTION outbox_janitor_lock(p_wait boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	IF p_wait THEN
		PERFORM outbox_lock_lane('', -3);
		RETURN true;
	END IF;
	RETURN outbox_try_lock_lane('', -3);
END $$;

-- The lanes that the failed ones among these are in, and their other deliveries, in the order of dead.sql.
CREATE OR REPLACE FUNCTION outbox_lock_lanes_of(p_seqs bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	PERFORM outbox_lock_lane(l.target, l.lane) FROM (
		SELECT d.target, d.lane FROM unnest(p_seqs) s(seq)
		JOIN outbox_target t ON EXISTS (SELECT FROM outbox_target o JOIN outbox_detour f ON f.target = o.name
			WHERE f.seq = s.seq AND f.state = 'failed')
		JOIN outbox_detour d ON d.target = t.name AND d.seq = s.seq
		GROUP BY d.target, d.lane ORDER BY outbox_dead_depth(d.target) DESC, d.target, d.lane OFFSET 0) l;
END $$;

-- p_only: of those that may be removed, only these; row by row even in partitions that would otherwise be dropped.
CREATE OR REPLACE FUNCTION outbox_purge(p_delivered timestamptz, p_failed timestamptz, p_through bigint, p_from bigint,
	p_limit bigint, p_actor text, p_now timestamptz, p_only bigint[] DEFAULT NULL,
	OUT messages bigint, OUT failed bigint, OUT receipts bigint, OUT detours bigint, OUT more boolean, OUT seen bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET jit = off SET enable_seqscan = off AS $$
DECLARE
	cuts outbox_cut[];
	found record;
	locked bigint[];
	gone record;
	kept record;
	kept_by text;
BEGIN
	messages := 0;
	failed := 0;
	receipts := 0;
	detours := 0;
	more := false;
	seen := 0;
	IF NOT outbox_janitor_lock(p_actor IS NOT NULL) THEN
		RETURN;
	END IF;
	kept_by := outbox_kept_by(p_now);
	IF kept_by IS NOT NULL AND p_actor IS NULL THEN
		RETURN; -- the janitor reports the lane or the target itself
	ELSIF kept_by IS NOT NULL THEN
		RAISE EXCEPTION '%', kept_by USING ERRCODE = 'OB002';
	END IF;
	cuts := outbox_cuts(p_delivered);
	IF cardinality(cuts) = 0 THEN
		RETURN; -- no target is registered: one may come that gets them
	END IF;
	found := outbox_find_victims(cuts, p_delivered, p_failed, p_through, p_from, p_limit, p_only IS NOT NULL);
	IF cardinality(found.failures) > 0 THEN
		-- An operator may requeue one at the same time: lock, then check again.
		PERFORM outbox_lock_lanes_of(found.failures);
		locked := found.failures;
		found := outbox_find_victims(cuts, p_delivered, p_failed, p_through, p_from, p_limit, p_only IS NOT NULL);
		-- One that moved up meanwhile is in a lane that is not locked: leave it for now.
		found.victims := ARRAY(SELECT v FROM unnest(found.victims) v WHERE v <> ALL (found.failures) OR v = ANY (locked) ORDER BY v);
		found.failures := ARRAY(SELECT f FROM unnest(found.failures) f WHERE f = ANY (locked));
	END IF;
	IF p_only IS NOT NULL THEN -- the archive has these; what else has become old is removed the next time
		found.victims := ARRAY(SELECT v FROM unnest(found.victims) v WHERE v IN (SELECT unnest(p_only)) ORDER BY v);
		found.failures := ARRAY(SELECT f FROM unnest(found.failures) f WHERE f IN (SELECT unnest(p_only)));
	END IF;
	more := found.more;
	seen := found.seen;
	IF cardinality(found.victims) > 0 THEN
		gone := outbox_remove(found.victims, outbox_now(p_now));
		messages := gone.messages;
		detours := gone.detours;
		failed := cardinality(found.failures);
	END IF;
	IF NOT more AND EXISTS (SELECT FROM outbox_kept) THEN
		kept := outbox_purge_kept(p_delivered, p_failed, p_through, p_limit, outbox_now(p_now), p_only);
		messages := messages + kept.messages;
		failed := failed + kept.failed;
		detours := detours + kept.detours;
		more := kept.more;
	END IF;
	IF p_delivered IS NOT NULL THEN
		PERFORM outbox_write_down(found.survivors, cuts);
		IF NOT more THEN
			SELECT r.receipts, r.more INTO receipts, more FROM outbox_purge_receipts(cuts, greatest(p_limit, 1000)) r;
		END IF;
	END IF;
	PERFORM outbox_purge_amended();
	-- One row per call, not per message: what is removed has no history left to look at.
	IF p_actor IS NOT NULL AND messages > 0 THEN
		INSERT INTO outbox_audit (at, actor, action, detail) VALUES (outbox_now(p_now), p_actor, 'purge',
			messages || CASE messages WHEN 1 THEN ' message, ' ELSE ' messages, ' END || failed || ' of them with a failed delivery');
	END IF;
END $$;

-- The complete messages that outbox_purge() would remove, for an archive; at most p_bytes of payload at once.
CREATE OR REPLACE FUNCTION outbox_purgeable(p_delivered timestamptz, p_failed timestamptz, p_through bigint, p_after bigint,
	p_limit bigint, p_bytes bigint) RETURNS SETOF outbox_message
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET jit = off SET enable_seqscan = off AS $$
DECLARE
	cuts outbox_cut[] := outbox_cuts(p_delivered);
	kept bigint[];
	seqs bigint[];
	found record;
	after bigint := p_after;
	kept_by text := CASE WHEN p_after = 0 THEN outbox_kept_by(NULL) END; -- once is enough: purge() asks again
BEGIN
	IF kept_by IS NOT NULL THEN
		RAISE EXCEPTION '%', kept_by USING ERRCODE = 'OB002';
	END IF;
	IF cardinality(cuts) = 0 THEN
		RETURN;
	END IF;
	kept := ARRAY(SELECT o FROM outbox_old_kept(p_delivered, p_failed, p_through) o WHERE o > p_after ORDER BY o LIMIT p_limit);
	LOOP -- a call that saw only messages that stay must not look like the end
		found := outbox_find_victims(cuts, p_delivered, p_failed, p_through, after, p_limit, true);
		EXIT WHEN cardinality(found.victims) > 0 OR NOT found.more OR kept[1] <= found.seen;
		after := found.seen;
	END LOOP;
	seqs := ARRAY(SELECT s.seq FROM unnest(found.victims || kept) s(seq) WHERE NOT found.more OR s.seq <= found.seen
		GROUP BY s.seq ORDER BY s.seq LIMIT p_limit);
	RETURN QUERY WITH whole AS (
			SELECT m.* FROM outbox_message m WHERE m.seq = ANY (seqs)
			UNION ALL
			SELECT m.* FROM outbox_kept k CROSS JOIN LATERAL outbox_kept_message(k) m WHERE k.seq = ANY (seqs)
				AND NOT EXISTS (SELECT FROM outbox_message o WHERE o.seq = k.seq))
		SELECT w.* FROM whole w JOIN (SELECT o.seq, sum(outbox_weight(o.payload, o.payload_bin, o.headers))
				OVER (ORDER BY o.seq ROWS UNBOUNDED PRECEDING) AS bytes FROM whole o) s ON s.seq = w.seq
		WHERE s.bytes <= p_bytes OR s.seq = seqs[1]
		ORDER BY w.seq;
END $$;
