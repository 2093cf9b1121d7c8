-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL, version 2: retention locks lanes in the order of v2_dead.sql, too. In the order of their
-- names it and a settlement with a dead letter waited for each other.

-- The lanes that the failed ones among these are in, and their other deliveries.
CREATE FUNCTION outbox_lock_lanes_of(p_seqs bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(outbox_lane_lock(l.target, l.lane)) FROM (
		SELECT d.target, d.lane FROM unnest(p_seqs) s(seq)
		JOIN outbox_target t ON EXISTS (SELECT FROM outbox_target o JOIN outbox_detour f ON f.target = o.name
			WHERE f.seq = s.seq AND f.state = 'failed')
		JOIN outbox_detour d ON d.target = t.name AND d.seq = s.seq
		GROUP BY d.target, d.lane ORDER BY outbox_dead_depth(d.target) DESC, d.target, d.lane OFFSET 0) l;
END $$;

-- As in purge.sql.
CREATE OR REPLACE FUNCTION outbox_purge(p_delivered timestamptz, p_failed timestamptz, p_through bigint, p_from bigint,
	p_limit bigint, p_actor text, p_now timestamptz,
	OUT messages bigint, OUT failed bigint, OUT receipts bigint, OUT detours bigint, OUT more boolean, OUT seen bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET jit = off SET enable_seqscan = off AS $$
DECLARE
	cuts outbox_cut[];
	found record;
	locked bigint[];
	gone record;
	kept record;
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
	cuts := outbox_cuts(p_delivered);
	IF cardinality(cuts) = 0 THEN
		RETURN; -- nobody is registered: somebody may come for them
	END IF;
	found := outbox_find_victims(cuts, p_delivered, p_failed, p_through, p_from, p_limit, false);
	IF cardinality(found.failures) > 0 THEN
		-- An operator may requeue one at this moment: lock, look again.
		PERFORM outbox_lock_lanes_of(found.failures);
		locked := found.failures;
		found := outbox_find_victims(cuts, p_delivered, p_failed, p_through, p_from, p_limit, false);
		-- One that moved up meanwhile is in a lane that is not locked: not now.
		found.victims := ARRAY(SELECT v FROM unnest(found.victims) v WHERE v <> ALL (found.failures) OR v = ANY (locked) ORDER BY v);
		found.failures := ARRAY(SELECT f FROM unnest(found.failures) f WHERE f = ANY (locked));
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
		kept := outbox_purge_kept(p_delivered, p_failed, p_through, p_limit, outbox_now(p_now));
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
	-- One row a call, not one a message: what is gone has no history left to look at.
	IF p_actor IS NOT NULL AND messages > 0 THEN
		INSERT INTO outbox_audit (at, actor, action, detail) VALUES (outbox_now(p_now), p_actor, 'purge',
			messages || ' messages, ' || failed || ' of them with a failed delivery');
	END IF;
END $$;

-- As in partition.sql.
CREATE OR REPLACE FUNCTION outbox_purge_kept(p_delivered timestamptz, p_failed timestamptz, p_through bigint, p_limit bigint, p_now timestamptz,
	OUT messages bigint, OUT failed bigint, OUT detours bigint, OUT more boolean)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	seqs bigint[];
BEGIN
	seqs := ARRAY(SELECT o FROM outbox_old_kept(p_delivered, p_failed, p_through) o ORDER BY o LIMIT p_limit + 1);
	more := cardinality(seqs) > p_limit;
	PERFORM outbox_lock_lanes_of(seqs);
	seqs := ARRAY(SELECT o FROM outbox_old_kept(p_delivered, p_failed, p_through) o
		WHERE o = ANY (seqs) AND NOT EXISTS (SELECT FROM outbox_message m WHERE m.seq = o) ORDER BY o LIMIT p_limit);
	failed := (SELECT count(DISTINCT d.seq) FROM outbox_target t JOIN outbox_detour d ON d.target = t.name
		WHERE d.seq = ANY (seqs) AND d.state = 'failed');
	DELETE FROM outbox_id i USING outbox_kept k WHERE k.seq = ANY (seqs) AND i.id = k.id;
	DELETE FROM outbox_kept k WHERE k.seq = ANY (seqs);
	GET DIAGNOSTICS messages = ROW_COUNT;
	detours := (outbox_remove(seqs, p_now)).detours;
END $$;
