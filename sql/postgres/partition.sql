-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: the log in partitions, which retention drops as a whole.
--
-- Publishing never fails and hardly waits. Partitions are created ahead of the log as separate tables and then
-- attached, which locks the default partition for a moment; old ones are dropped, which locks the log for a
-- moment. Both give up when a publisher's open transaction is in the way, and are tried again by the next
-- call. While no janitor runs, new messages go to the default partition; they are read like all others and
-- purged row by row.
--
-- To attach a partition PostgreSQL scans the default one while nobody can write to it. That is quick while it is
-- small. If it is not, a distant range is first excluded by a check constraint, which is validated while publishers
-- go on; then that range is attached without a scan, and the log's sequence jumps there. The range begins so far
-- ahead that publishers do not get there earlier: a hundred thousand partitions.

CREATE OR REPLACE FUNCTION outbox_is_partitioned() RETURNS boolean
LANGUAGE sql STABLE AS $$ SELECT EXISTS (SELECT FROM outbox_meta WHERE name = 'partitioned') $$;

-- Messages in a partition: row partition_rows of outbox_meta. For new partitions only.
CREATE OR REPLACE FUNCTION outbox_partition_rows() RETURNS bigint
LANGUAGE sql STABLE AS $$
	SELECT coalesce((SELECT greatest(value::bigint, 10) FROM outbox_meta WHERE name = 'partition_rows'), 1000000)
$$;

-- All except the default one: seq in [low, high).
CREATE OR REPLACE FUNCTION outbox_partitions() RETURNS TABLE (name text, low bigint, high bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
	SELECT p.relname::text, b.bound[1]::bigint, b.bound[2]::bigint
	FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhrelid
	CROSS JOIN LATERAL (SELECT regexp_match(pg_get_expr(p.relpartbound, p.oid),
		'FROM [(]''?([0-9]+)''?[)] TO [(]''?([0-9]+)''?[)]') AS bound) b
	WHERE i.inhparent = 'outbox_message'::regclass AND b.bound IS NOT NULL
	ORDER BY 2
$$;

-- How long to wait for a lock, at most a tenth of a second in all: publishers queue behind whoever waits for it.
CREATE OR REPLACE FUNCTION outbox_patience(p_milliseconds integer) RETURNS void
LANGUAGE sql AS $$ SELECT set_config('lock_timeout', p_milliseconds || 'ms', true) $$;

-- A table like the log. Constraints that the log has as NOT VALID must not be checked when a dump is loaded.
CREATE OR REPLACE FUNCTION outbox_make_partition(p_name text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	checked record;
BEGIN
	EXECUTE format('CREATE TABLE %I (LIKE outbox_message INCLUDING ALL EXCLUDING IDENTITY)', p_name);
	FOR checked IN SELECT c.conname, pg_get_constraintdef(c.oid) AS def FROM pg_constraint c
			WHERE c.conrelid = 'outbox_message'::regclass AND c.contype = 'c' AND NOT c.convalidated LOOP
		EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', p_name, checked.conname);
		EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I %s', p_name, checked.conname, checked.def);
	END LOOP;
	EXECUTE format('CREATE TRIGGER outbox_message_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON %I'
		' FOR EACH STATEMENT EXECUTE FUNCTION outbox_message_keep()', p_name);
END $$;

-- False: another transaction is in the way.
CREATE OR REPLACE FUNCTION outbox_attach(p_low bigint, p_high bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	name text := 'outbox_message_' || p_low;
BEGIN
	PERFORM outbox_make_partition(name);
	PERFORM outbox_patience(50); -- for the log, then for the default partition
	-- An INSERT in progress knows only the old partitions and would put rows of the new range into the default one,
	-- which refuses them: wait for its end.
	LOCK TABLE ONLY outbox_message IN SHARE ROW EXCLUSIVE MODE;
	EXECUTE format('ALTER TABLE outbox_message ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', name, p_low, p_high);
	RETURN true;
EXCEPTION WHEN lock_not_available OR check_violation THEN
	RETURN false; -- check_violation: the log got there first
END $$;

-- The range that the default partition refuses, and whether it is known to have no rows in it.
CREATE OR REPLACE FUNCTION outbox_gap(OUT name text, OUT low bigint, OUT high bigint, OUT validated boolean)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
	SELECT c.conname::text, b.bound[1]::bigint, b.bound[2]::bigint, c.convalidated FROM pg_constraint c
	CROSS JOIN LATERAL (SELECT regexp_match(c.conname, '^outbox_gap_([0-9]+)_([0-9]+)$') AS bound) b
	WHERE c.conrelid = to_regclass('outbox_message_default') AND b.bound IS NOT NULL
$$;

-- The way around a large default partition, one step per call: the steps must not share a transaction.
CREATE OR REPLACE FUNCTION outbox_attach_far(p_rows bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	gap record;
	rows bigint;
	low bigint := (outbox_log_end() / p_rows + 100000) * p_rows + 1;
BEGIN
	SELECT * INTO gap FROM outbox_gap();
	PERFORM outbox_patience(100);
	IF gap.name IS NULL THEN
		EXECUTE format('ALTER TABLE outbox_message_default ADD CONSTRAINT %I CHECK (seq < %s OR seq >= %s) NOT VALID',
			'outbox_gap_' || low || '_' || (low + 4 * p_rows), low, low + 4 * p_rows);
	ELSIF gap.low - outbox_log_end() < 1000 * p_rows THEN -- nothing was done for a very long time: use another range
		EXECUTE format('ALTER TABLE outbox_message_default DROP CONSTRAINT %I', gap.name);
	ELSIF NOT gap.validated THEN
		EXECUTE format('ALTER TABLE outbox_message_default VALIDATE CONSTRAINT %I', gap.name);
	ELSE
		rows := (gap.high - gap.low) / 4;
		FOR i IN 0 .. 3 LOOP
			CONTINUE WHEN EXISTS (SELECT FROM outbox_partitions() p WHERE p.low = gap.low + i * rows);
			RETURN outbox_attach(gap.low + i * rows, gap.low + (i + 1) * rows);
		END LOOP;
		-- The jump cannot be undone and is visible at once, so it is made when everybody can see its partitions.
		LOCK TABLE ONLY outbox_message IN SHARE ROW EXCLUSIVE MODE;
		EXECUTE format('ALTER TABLE outbox_message_default DROP CONSTRAINT %I', gap.name);
		PERFORM setval('outbox_message_seq_seq', gap.low - 1) WHERE outbox_log_end() < gap.low;
	END IF;
	RETURN true;
EXCEPTION WHEN lock_not_available THEN
	RETURN false;
END $$;

-- A default partition whose rows were removed is not small until it is truncated.
CREATE OR REPLACE FUNCTION outbox_empty_default() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	PERFORM outbox_patience(100);
	LOCK TABLE outbox_message_default IN ACCESS EXCLUSIVE MODE;
	IF NOT EXISTS (SELECT FROM outbox_message_default) THEN
		PERFORM set_config('outbox.janitor', 'on', true);
		TRUNCATE outbox_message_default;
		PERFORM set_config('outbox.janitor', '', true);
	END IF;
EXCEPTION WHEN lock_not_available THEN
	NULL;
END $$;

-- Keep two partitions ahead of the one in use, one step per call. True: a step was made, there may be another. It
-- must be the last thing that its transaction does, because publishers may wait for its end.
CREATE OR REPLACE FUNCTION outbox_tend_partitions() RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	rows bigint := outbox_partition_rows();
	log_end bigint;
	top bigint;
	size bigint := pg_relation_size('outbox_message_default');
BEGIN
	IF NOT outbox_janitor_lock(false) THEN
		RETURN false;
	ELSIF size > 1048576 AND NOT EXISTS (SELECT FROM outbox_message_default) THEN
		PERFORM outbox_empty_default();
		RETURN pg_relation_size('outbox_message_default') < size;
	END IF;
	log_end := outbox_log_end();
	top := coalesce((SELECT max(p.high) FROM outbox_partitions() p), 1);
	IF (outbox_gap()).name IS NOT NULL THEN
		RETURN outbox_attach_far(rows);
	ELSIF top > log_end + 3 * rows THEN
		RETURN false;
	ELSIF size > 8388608 THEN
		RETURN top <= log_end + 2 * rows AND outbox_attach_far(rows);
	ELSIF top <= log_end THEN -- no relay ran: leave a range to the default partition rather than race for it
		top := (log_end / rows + 2) * rows + 1;
	END IF;
	RETURN outbox_attach(top, top + rows);
END $$;

-- ---- dropping ----------------------------------------------------------------------------------------------

-- Is there a message in this range that the targets of these cuts still need, or that is not old enough? Most of a million
-- are not meant for any of them: the routings alone show that, without looking at receipts.
CREATE OR REPLACE FUNCTION outbox_is_wanted(p_low bigint, p_high bigint, p_cuts outbox_cut[], p_delivered timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	RETURN (SELECT m.created_at FROM outbox_message m WHERE m.seq >= p_low AND m.seq < p_high ORDER BY m.seq DESC LIMIT 1) >= p_delivered
		OR EXISTS (WITH wishes AS MATERIALIZED (SELECT * FROM outbox_wishes(p_cuts))
			SELECT FROM outbox_route r CROSS JOIN LATERAL (SELECT o AS m FROM outbox_message o
				WHERE o.seq >= p_low AND o.seq < p_high AND (r.types IS NULL OR o.type LIKE ANY (r.types))
					AND (r.kind IS NULL OR coalesce(o.kind, 'event') = r.kind)
					AND (NOT r.published_only OR o.published)
					AND (r.bands IS NULL OR outbox_bands_take(r.bands, o.priority, o.seq))
					AND (r.headers IS NULL OR outbox_headers_take(r.headers, o.headers)) OFFSET 0) t
			CROSS JOIN LATERAL (SELECT (t.m).*) m
			JOIN wishes w ON w.target = r.target
				AND w.lane = m.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes')
			WHERE r.types IS DISTINCT FROM ARRAY[''] -- a dead letter target matches none
				AND EXISTS (SELECT FROM wishes o WHERE o.target = r.target AND (r.version = o.version
					OR r.version BETWEEN coalesce((o.bound).route_version, 0) AND (o.last).route_version))
				AND NOT pg_visible_in_snapshot(m.xid, w.start)
				AND NOT ((w.bound).n IS NOT NULL AND outbox_is_settled(m.xid, m.seq, w.bound))
				AND outbox_concerns(m, w.target, w.bound, w.last, w.version)
				AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = w.target AND d.seq = m.seq));
END $$;

-- Did every lane finish the whole partition, and long enough ago? Everything at or below prev_seq is visible in prev,
-- except for transactions that were running then: one probe for each of them instead of a million rows. If a lane is not
-- that far, its target may not get these messages at all: then they are examined.
CREATE OR REPLACE FUNCTION outbox_is_settled_whole(p_low bigint, p_high bigint, p_cuts outbox_cut[], p_delivered timestamptz)
RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	c outbox_cut;
	b outbox_receipt;
	behind outbox_cut[] := '{}';
BEGIN
	FOREACH c IN ARRAY p_cuts LOOP
		b := c.bound;
		IF b.n IS NULL OR b.prev_seq < p_high - 1 OR EXISTS (
				SELECT FROM pg_snapshot_xip(b.prev) t(x) JOIN outbox_message m ON m.xid = t.x
				WHERE m.seq >= p_low AND m.seq < p_high AND m.seq > b.floor)
			OR EXISTS (SELECT FROM outbox_message m WHERE m.xid >= pg_snapshot_xmax(b.prev) AND m.xid <= b.prev_xid
				AND m.seq >= p_low AND m.seq < p_high AND m.seq > b.floor) THEN
			behind := behind || c;
		END IF;
	END LOOP;
	RETURN cardinality(behind) = 0 OR NOT coalesce(outbox_is_wanted(p_low, p_high, behind, p_delivered), false);
END $$;

-- Did a message become visible in this range since a snapshot?
CREATE OR REPLACE FUNCTION outbox_came_since(p_seen pg_snapshot, p_low bigint, p_high bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT EXISTS (SELECT FROM pg_snapshot_xip(p_seen) t(x) JOIN outbox_message m ON m.xid = t.x
			WHERE m.seq >= p_low AND m.seq < p_high)
		OR EXISTS (SELECT FROM outbox_message m WHERE m.xid >= pg_snapshot_xmax(p_seen) AND m.seq >= p_low AND m.seq < p_high)
$$;

-- The partitions that may be dropped, oldest first, up to a number (NULL: all): settled, and archived if that was asked
-- for.
CREATE OR REPLACE FUNCTION outbox_old_partitions(p_cuts outbox_cut[], p_delivered timestamptz, p_through bigint, p_max integer)
RETURNS TABLE (name text, low bigint, high bigint, seen pg_snapshot)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	p record;
BEGIN
	seen := pg_current_snapshot();
	FOR p IN SELECT * FROM outbox_partitions() o WHERE o.high - 1 <= outbox_log_end() ORDER BY o.low LIMIT p_max LOOP
		EXIT WHEN NOT outbox_is_settled_whole(p.low, p.high, p_cuts, p_delivered) OR (p_through < p.high - 1
			AND EXISTS (SELECT FROM outbox_message m WHERE m.seq > p_through AND m.seq < p.high));
		name := p.name;
		low := p.low;
		high := p.high;
		RETURN NEXT;
	END LOOP;
END $$;

-- Messages that are removed row by row and, if asked for, those of partitions that are dropped.
CREATE OR REPLACE FUNCTION outbox_scan_partitions(p_cuts outbox_cut[], p_delivered timestamptz, p_through bigint, p_from bigint,
	p_to bigint, p_scan bigint, p_whole boolean) RETURNS bigint[]
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	seqs bigint[] := ARRAY(SELECT m.seq FROM outbox_message_default m WHERE m.seq > p_from AND m.seq <= p_to
		ORDER BY m.seq LIMIT p_scan);
BEGIN
	IF NOT p_whole THEN
		RETURN seqs;
	END IF;
	RETURN ARRAY(SELECT u.seq FROM (SELECT unnest(seqs) AS seq
		UNION ALL
		(SELECT m.seq FROM outbox_old_partitions(p_cuts, p_delivered, p_through, NULL) p
		CROSS JOIN LATERAL (SELECT o.seq FROM outbox_message o
			WHERE o.seq >= p.low AND o.seq < p.high AND o.seq > p_from AND o.seq <= p_through
			ORDER BY o.seq LIMIT p_scan) m
		ORDER BY m.seq LIMIT p_scan)) u ORDER BY u.seq LIMIT p_scan);
END $$;

-- Messages of a partition with a detour that is not finished, or not long enough ago.
CREATE OR REPLACE FUNCTION outbox_needed(p_low bigint, p_high bigint, p_delivered timestamptz) RETURNS SETOF bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT DISTINCT d.seq FROM outbox_target t JOIN outbox_detour d ON d.target = t.name
	WHERE d.seq >= p_low AND d.seq < p_high
		AND NOT (d.state IN ('delivered', 'discarded') AND d.last_status_at < p_delivered)
$$;

-- These outlive their partition, with the users' own columns that both tables have.
CREATE OR REPLACE FUNCTION outbox_keep(p_seqs bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	columns text := (SELECT string_agg(quote_ident(a.attname), ', ') FROM pg_attribute a
		JOIN pg_attribute k ON k.attrelid = 'outbox_kept'::regclass AND k.attname = a.attname
		WHERE a.attrelid = 'outbox_message'::regclass AND a.attnum > 0 AND k.attnum > 0 AND k.attgenerated = ''
			AND NOT a.attisdropped AND NOT k.attisdropped);
BEGIN
	EXECUTE format('INSERT INTO outbox_kept (%s) SELECT %s FROM outbox_message WHERE seq = ANY ($1)', columns, columns)
		USING p_seqs;
END $$;

-- Drop the oldest partition that may be dropped, one bounded step at a time. It must be the last thing that its
-- transaction does: from here on publishers wait for its end.
CREATE OR REPLACE FUNCTION outbox_drop_partition(p_delivered timestamptz, p_through bigint, p_limit bigint,
	OUT messages bigint, OUT detours bigint, OUT more boolean)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	cuts outbox_cut[];
	p record;
	needed bigint[];
	done bigint;
BEGIN
	messages := 0;
	detours := 0;
	more := false;
	IF NOT outbox_janitor_lock(false) OR outbox_kept_by(NULL) IS NOT NULL THEN
		RETURN;
	END IF;
	cuts := outbox_cuts(p_delivered); -- locked: a target that is not in it yet would not be considered
	SELECT * INTO p FROM outbox_old_partitions(cuts, p_delivered, p_through, 1);
	IF NOT FOUND OR cardinality(cuts) = 0 THEN
		RETURN;
	END IF;
	needed := ARRAY(SELECT n FROM outbox_needed(p.low, p.high, p_delivered) n
		WHERE NOT EXISTS (SELECT FROM outbox_kept k WHERE k.seq = n) LIMIT p_limit);
	IF cardinality(needed) > 0 THEN
		PERFORM outbox_write_down(needed, cuts);
		PERFORM outbox_keep(needed);
		more := true;
		RETURN;
	END IF;
	DELETE FROM outbox_id i WHERE i.id IN (SELECT o.id FROM outbox_id o WHERE o.seq >= p.low AND o.seq < p.high
		AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.id = o.id)
		-- a batch remembers its ids by its first place, and may reach into later partitions
		AND NOT EXISTS (SELECT FROM outbox_message m WHERE m.id = o.id AND m.seq >= p.high) LIMIT p_limit);
	GET DIAGNOSTICS done = ROW_COUNT;
	IF done > 0 THEN
		more := true;
		RETURN;
	END IF;
	BEGIN
		SELECT count(*) INTO messages FROM outbox_message m WHERE m.seq >= p.low AND m.seq < p.high
			AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.seq = m.seq);
		DELETE FROM outbox_detour d USING outbox_target t WHERE d.target = t.name AND d.seq >= p.low AND d.seq < p.high
			AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.seq = d.seq);
		GET DIAGNOSTICS detours = ROW_COUNT;
		DELETE FROM outbox_cancelled c WHERE c.seq >= p.low AND c.seq < p.high
			AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.seq = c.seq);
		PERFORM outbox_patience(60);
		LOCK TABLE ONLY outbox_message IN ACCESS EXCLUSIVE MODE;
		-- A writer that was still open at the first look may have committed since. Now there is none.
		IF outbox_came_since(p.seen, p.low, p.high) OR EXISTS (
				SELECT FROM outbox_needed(p.low, p.high, p_delivered) n WHERE NOT EXISTS (SELECT FROM outbox_kept k WHERE k.seq = n)) THEN
			RAISE lock_not_available;
		END IF;
		PERFORM outbox_patience(20);
		EXECUTE format('DROP TABLE %I', p.name);
		PERFORM outbox_purge_amended();
		more := true;
	EXCEPTION WHEN lock_not_available THEN
		messages := 0;
		detours := 0;
	END;
END $$;

-- Kept messages whose detours are all finished long enough ago.
CREATE OR REPLACE FUNCTION outbox_old_kept(p_delivered timestamptz, p_failed timestamptz, p_through bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT k.seq FROM outbox_kept k WHERE k.seq <= p_through
		AND NOT EXISTS (SELECT FROM outbox_target t JOIN outbox_detour d ON d.target = t.name WHERE d.seq = k.seq
			AND NOT coalesce(d.last_status_at < CASE WHEN d.state = 'failed' THEN p_failed
				WHEN d.state IN ('delivered', 'discarded') THEN p_delivered END, false))
$$;

-- Remove them. The lanes of failed ones are locked: an operator may requeue one at the same time.
CREATE OR REPLACE FUNCTION outbox_purge_kept(p_delivered timestamptz, p_failed timestamptz, p_through bigint, p_limit bigint, p_now timestamptz,
	p_only bigint[], OUT messages bigint, OUT failed bigint, OUT detours bigint, OUT more boolean)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	seqs bigint[];
BEGIN
	seqs := ARRAY(SELECT o FROM outbox_old_kept(p_delivered, p_failed, p_through) o
		WHERE p_only IS NULL OR o IN (SELECT unnest(p_only)) ORDER BY o LIMIT p_limit + 1);
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
