-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: reading the log by snapshot windows.
--
-- Transactions commit in any order, so a number cannot say what was read. A window can: the messages
-- visible in one snapshot (cur) and not in an earlier one (prev). It is the union of three sets, each of
-- which is found by an index, whatever else happens in the cluster:
--     (a) of transactions that were running in prev, at or below prev_seq: one probe per transaction;
--     (b) of transactions that began about then, xid in [xmax of prev, prev_xid], at or below prev_seq:
--         the same, their xids found by skipping along the index;
--     (c) above prev_seq: straight along the primary key.
-- Nothing at or below prev_seq has an xid above prev_xid: see outbox_message. A snapshot's xmax is not enough
-- for (b): it is the last completed xid + 1, and the transactions between may hold low seqs.

-- (a) and (b): which transactions may have messages at or below prev_seq in this window?
-- (plpgsql keeps the plan, which matters where the log has many partitions.)
CREATE OR REPLACE FUNCTION outbox_late(p_prev pg_snapshot, p_prev_xid xid8, p_cur pg_snapshot) RETURNS xid8[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (WITH RECURSIVE young AS (
		(SELECT m.xid FROM outbox_message m WHERE m.xid >= pg_snapshot_xmax(p_prev) AND m.xid <= p_prev_xid
			ORDER BY m.xid LIMIT 1)
		UNION ALL
		SELECT (SELECT m.xid FROM outbox_message m WHERE m.xid > y.xid AND m.xid <= p_prev_xid
			ORDER BY m.xid LIMIT 1)
		FROM young y WHERE y.xid IS NOT NULL
	)
	SELECT array_agg(u.x) FROM (
		SELECT pg_snapshot_xip(p_prev) AS x
		UNION ALL SELECT y.xid FROM young y WHERE y.xid IS NOT NULL
	) u WHERE pg_visible_in_snapshot(u.x, p_cur));
END $$;

-- How far one look along the log goes: scan numbers (NULL: no bound), or to the end of the window. By numbers and not by rows: rows
-- may be removed in the next moment, and a look would seem to have covered more.
CREATE OR REPLACE FUNCTION outbox_reach(pos bigint, prev_seq bigint, cur_seq bigint, scan bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN cur_seq - greatest(pos, prev_seq) > scan THEN greatest(pos, prev_seq) + scan ELSE cur_seq END
$$;

-- The messages of a window in a range of the log above prev_seq; every: all rows there are known to belong to it. None of
-- them is settled, whatever prev says: nothing there is visible in prev, unless it is another server's or the log's
-- sequence was set back.
-- Inlined: no SET, not volatile. Parameters are qualified with the function's name: a column that users add to the log
-- may have the same name, and would be used instead.
CREATE OR REPLACE FUNCTION outbox_stretch(low bigint, high bigint, prev pg_snapshot, cur pg_snapshot, lane integer, lanes integer,
	types text[], kind text, published_only boolean, every boolean DEFAULT false, bands bigint[] DEFAULT NULL,
	headers text[] DEFAULT NULL)
RETURNS SETOF outbox_message
LANGUAGE sql STABLE ROWS 500 AS $$
	SELECT m.* FROM outbox_message m
	WHERE m.seq > outbox_stretch.low AND m.seq <= outbox_stretch.high
		AND (outbox_stretch.every OR (m.slot % outbox_stretch.lanes = outbox_stretch.lane
		AND pg_visible_in_snapshot(m.xid, outbox_stretch.cur)
		AND (outbox_stretch.types IS NULL OR m.type LIKE ANY (outbox_stretch.types))
		AND (outbox_stretch.kind IS NULL OR coalesce(m.kind, 'event') = outbox_stretch.kind)
		AND (NOT outbox_stretch.published_only OR m.published)
		AND (outbox_stretch.bands IS NULL OR outbox_bands_take(outbox_stretch.bands, m.priority, m.seq))
		AND (outbox_stretch.headers IS NULL OR outbox_headers_take(outbox_stretch.headers, m.headers))))
$$;

-- The next messages of a lane in a window, in seq order. scan bounds the look in (c); skip: not those with a detour
-- of that target, which are looked for one by one: as NOT EXISTS, the planner would read all detours of the target into a
-- hash table first.
-- No SET and not volatile: it is inlined where it is used.
CREATE OR REPLACE FUNCTION outbox_window(pos bigint, prev pg_snapshot, prev_seq bigint, late xid8[], cur pg_snapshot, cur_seq bigint,
	lane integer, lanes integer, types text[], kind text, published_only boolean, bands bigint[],
	headers text[], max bigint, scan bigint, skip text DEFAULT NULL) RETURNS SETOF outbox_message
LANGUAGE sql STABLE ROWS 500 AS $$
	(SELECT l.* FROM unnest(outbox_window.late) AS t(x) CROSS JOIN LATERAL (
		SELECT m.* FROM outbox_message m
		-- as rows, and in the order of (xid, seq), so that no plan walks the primary key instead: the callers switch
		-- sorting off. And again by seq alone, which selects partitions
		WHERE (m.xid, m.seq) > (t.x, outbox_window.pos) AND (m.xid, m.seq) <= (t.x, outbox_window.prev_seq)
			AND m.seq > outbox_window.pos AND m.seq <= outbox_window.prev_seq
			AND m.slot % outbox_window.lanes = outbox_window.lane
			AND (outbox_window.types IS NULL OR m.type LIKE ANY (outbox_window.types))
			AND (outbox_window.kind IS NULL OR coalesce(m.kind, 'event') = outbox_window.kind)
			AND (NOT outbox_window.published_only OR m.published)
			AND (outbox_window.bands IS NULL OR outbox_bands_take(outbox_window.bands, m.priority, m.seq))
			AND (outbox_window.headers IS NULL OR outbox_headers_take(outbox_window.headers, m.headers))
			AND (outbox_window.skip IS NULL OR (SELECT d.seq FROM outbox_detour d
				WHERE (d.target, d.seq) >= (outbox_window.skip, m.seq) AND (d.target, d.seq) <= (outbox_window.skip, m.seq)
				ORDER BY d.target, d.seq LIMIT 1) IS NULL)
		ORDER BY m.xid, m.seq LIMIT outbox_window.max) l
	ORDER BY l.seq LIMIT outbox_window.max)
	UNION ALL
	(SELECT m.* FROM outbox_stretch(greatest(pos, prev_seq), outbox_reach(pos, prev_seq, cur_seq, scan), prev, cur, lane,
		lanes, types, kind, published_only, false, bands, headers) m
	WHERE outbox_window.skip IS NULL OR (SELECT d.seq FROM outbox_detour d
				WHERE (d.target, d.seq) >= (outbox_window.skip, m.seq) AND (d.target, d.seq) <= (outbox_window.skip, m.seq)
				ORDER BY d.target, d.seq LIMIT 1) IS NULL
	ORDER BY m.seq LIMIT outbox_window.max)
$$;

-- What a message costs of a budget for bytes. Inlined.
CREATE OR REPLACE FUNCTION outbox_weight(payload text, payload_bin bytea, headers text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
	SELECT (coalesce(octet_length(payload), octet_length(payload_bin)) + coalesce(octet_length(headers), 0))::bigint
$$;

-- How far such a look has seen everything: up to the row after it, or the end of the window. Unused numbers in between
-- are passed at once; a row that appears there later is not in this window.
CREATE OR REPLACE FUNCTION outbox_scanned(p_pos bigint, p_prev_seq bigint, p_cur_seq bigint, p_scan bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN coalesce((SELECT m.seq - 1 FROM outbox_message m
		WHERE m.seq > outbox_reach(p_pos, p_prev_seq, p_cur_seq, p_scan) AND m.seq <= p_cur_seq ORDER BY m.seq LIMIT 1),
		9223372036854775807);
END $$;

-- Is a message settled by the position in a receipt? Places in the log are compared, too: transaction numbers
-- may be those of another server, see outbox_rebase().
CREATE OR REPLACE FUNCTION outbox_is_settled(xid xid8, seq bigint, p outbox_receipt) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT seq <= (p).floor OR (seq <= (p).prev_seq AND pg_visible_in_snapshot(xid, (p).prev))
		OR (seq <= (p).pos AND pg_visible_in_snapshot(xid, (p).cur))
$$;

-- The last value of the log's sequence; 0 before the first message. Not by SELECT FROM the sequence: its row is changed in place, and
-- for a moment nextval() leaves there what it writes ahead to the WAL, up to 32 numbers too many. A position that far ahead
-- would be refused as one of another history. (plpgsql keeps the plan.)
-- Since PostgreSQL 17 it is NULL, too, for a role without rights on the sequence: that is no empty log.
CREATE OR REPLACE FUNCTION outbox_log_end() RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
	last bigint := pg_sequence_last_value('outbox_message_seq_seq');
BEGIN
	IF last IS NULL AND NOT has_sequence_privilege('outbox_message_seq_seq', 'SELECT, USAGE') THEN
		RAISE EXCEPTION 'permission denied for sequence outbox_message_seq_seq' USING ERRCODE = '42501';
	END IF;
	RETURN coalesce(last, 0);
END $$;

-- A message that was kept when its partition was dropped, as a row of the log. Both tables may have users' own columns,
-- in any order: only ours are named.
CREATE OR REPLACE FUNCTION outbox_kept_message(k outbox_kept) RETURNS outbox_message
LANGUAGE plpgsql STABLE AS $$
DECLARE
	m outbox_message;
BEGIN
	m.xid := k.xid;
	m.seq := k.seq;
	m.slot := k.slot;
	m.id := k.id;
	m.type := k.type;
	m.key := k.key;
	m.kind := k.kind;
	m.published := k.published;
	m.priority := k.priority;
	m.created_at := k.created_at;
	m.event_time := k.event_time;
	m.due_at := k.due_at;
	m.expires_at := k.expires_at;
	m.content_type := k.content_type;
	m.source := k.source;
	m.subject := k.subject;
	m.topic := k.topic;
	m.correlation_id := k.correlation_id;
	m.causation_id := k.causation_id;
	m.traceparent := k.traceparent;
	m.headers := k.headers;
	m.payload := k.payload;
	m.payload_bin := k.payload_bin;
	RETURN m;
END $$;
