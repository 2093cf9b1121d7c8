-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: queries of `outbox doctor`.

-- The plan of the query with which a relay reads the log, on the tables as they are and with the settings
-- of outbox_settle_and_claim(). Volatile, or EXPLAIN is refused; it writes nothing. No row before the first target is registered.
CREATE OR REPLACE FUNCTION outbox_window_plan() RETURNS SETOF text
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
	last outbox_receipt;
	lanes integer := (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	line text;
BEGIN
	SELECT * INTO last FROM outbox_receipt ORDER BY number DESC LIMIT 1;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT w.seq FROM outbox_window($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) w'
		USING last.pos, last.prev, last.prev_seq, outbox_late(last.prev, last.prev_xid, last.cur), last.cur,
			last.cur_seq, last.lane, lanes, NULL::text[], NULL::text, false, NULL::bigint[], NULL::text[], 500::bigint, outbox_scan_max()
	LOOP
		RETURN NEXT line;
	END LOOP;
END $$;
