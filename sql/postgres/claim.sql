-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: choose the next messages of a lane, and read them.
--
-- Detours (detour.sql) and new rows of the log are merged by seq and cut. If there are only new rows, the short way
-- (straight.sql) has done it already.
--
-- variable_conflict: a column that people add to the log may have the name of a variable.

-- How many numbers of the log one look covers.
CREATE OR REPLACE FUNCTION outbox_scan_max() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 20000::bigint $$;

-- How many looks one call makes: a lane that finds nothing in one moves its position and looks further.
CREATE OR REPLACE FUNCTION outbox_scan_rounds() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 25 $$;

CREATE OR REPLACE FUNCTION outbox_micros(t timestamptz) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT (extract(epoch FROM t) * 1000000)::bigint $$;

CREATE OR REPLACE FUNCTION outbox_claim_head(p outbox_receipt, now timestamptz, paused boolean, stale boolean, next_due timestamptz,
	ahead bigint DEFAULT 0) RETURNS outbox_claimed
LANGUAGE plpgsql STABLE AS $$
DECLARE
	c outbox_claimed;
BEGIN
	c.head := ARRAY[p.n, p.token, outbox_micros(now), paused::integer, stale::integer,
		outbox_is_cautious(p)::integer, coalesce(outbox_micros(next_due), 0), ahead];
	RETURN c;
END $$;

-- What a row of a claim is; src/store/postgres/settle_and_claim.c has the same numbers.
CREATE OR REPLACE FUNCTION outbox_flag_detour() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 1 $$;
CREATE OR REPLACE FUNCTION outbox_flag_suspect() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 2 $$;
CREATE OR REPLACE FUNCTION outbox_flag_blocked() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 4 $$;
CREATE OR REPLACE FUNCTION outbox_flag_dead() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 8 $$;

-- A claim says no more than it returns: the whole call fails, and the next one is right.
CREATE OR REPLACE FUNCTION outbox_raise_removed(p_target text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RAISE EXCEPTION 'target %: messages were removed while they were read', p_target USING ERRCODE = 'serialization_failure';
END $$;

-- The messages of a claim, in seq order: which, and whether they are detours or blocked. Of a dead letter outbox_dead() has
-- the details. The column head, which only the last row needs, holds for a message since when it can be sent, if known.
-- (plpgsql keeps the plan.)
CREATE OR REPLACE FUNCTION outbox_read_claim(p_target text, p_seqs bigint[], p_flags integer[]) RETURNS SETOF outbox_claimed
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	RETURN QUERY SELECT CASE WHEN d.ready_at IS NOT NULL THEN ARRAY[outbox_micros(d.ready_at)] END, u.seq,
		coalesce(m.id, d.id, outbox_raise_removed(p_target)), m.type, coalesce(m.key, d.key), m.kind, m.published, m.created_at,
		m.event_time, m.due_at, m.expires_at, m.priority, m.content_type, m.source, m.subject,
		m.topic, m.correlation_id, m.causation_id, m.traceparent, CASE WHEN u.flags & outbox_flag_blocked() = 0 THEN m.headers END,
		CASE WHEN u.flags & outbox_flag_blocked() = 0 THEN m.payload END, CASE WHEN u.flags & outbox_flag_blocked() = 0 THEN m.payload_bin END,
		coalesce(d.attempts, 0), d.failing_since,
		u.flags + CASE WHEN d.suspect THEN outbox_flag_suspect() ELSE 0 END
			+ CASE WHEN d.dead_target IS NOT NULL THEN outbox_flag_dead() ELSE 0 END
	FROM unnest(p_seqs, p_flags) WITH ORDINALITY AS u(seq, flags, i)
	LEFT JOIN LATERAL (
		SELECT l.id, l.type, l.key, l.kind, l.published, l.created_at, l.event_time, l.due_at, l.expires_at,
			l.priority, l.content_type, l.source, l.subject, l.topic, l.correlation_id, l.causation_id,
			l.traceparent, l.headers, l.payload, l.payload_bin
		FROM outbox_message l WHERE l.seq = u.seq
		UNION ALL
		SELECT k.id, k.type, k.key, k.kind, k.published, k.created_at, k.event_time, k.due_at, k.expires_at,
			k.priority, k.content_type, k.source, k.subject, k.topic, k.correlation_id, k.causation_id,
			k.traceparent, k.headers, k.payload, k.payload_bin
		FROM outbox_kept k WHERE k.seq = u.seq LIMIT 1) m ON true
	LEFT JOIN LATERAL (
		SELECT o.id, o.key, o.ready_at, o.attempts, o.failing_since, o.suspect, o.dead_target FROM outbox_detour o
		WHERE u.flags & outbox_flag_detour() <> 0 AND (o.target, o.seq) >= (p_target, u.seq) AND (o.target, o.seq) <= (p_target, u.seq)
		ORDER BY o.target, o.seq LIMIT 1) d ON true
	ORDER BY u.i;
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
		SELECT d.seq, outbox_flag_detour() AS flags FROM outbox_detour d
		WHERE d.target = last.target AND d.lane = last.lane AND d.state = 'sending'
		UNION ALL
		SELECT w.seq, CASE WHEN v.detours AND NOT v.unordered AND (SELECT b.seq FROM outbox_blocker(last.target, w.key, w.seq, v.hold, '{}',
			p_now) b) IS NOT NULL THEN outbox_flag_blocked() ELSE 0 END
		FROM outbox_window(greatest(last.pos, last.floor), last.prev, last.prev_seq,
			outbox_late(last.prev, last.prev_xid, last.cur), last.cur, least(last.cur_seq, last.claim_end), last.lane, v.lanes,
			v.types, v.kind, v.published_only, v.bands, v.headers, 9223372036854775807, 9223372036854775807) w
		WHERE w.seq <= last.claim_end
			AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = last.target AND d.seq = w.seq
				AND NOT (coalesce(d.dead_n = last.n, false) AND d.state = 'pending'))
	) i;
	RETURN QUERY SELECT * FROM outbox_read_claim(last.target, coalesce(seqs, '{}'), flags);
END $$;

-- Picks and rows by seq, cut by count, by bytes and at a suspect; with flags. stopped: some did not fit. waiting: what
-- outbox_waiting_keys() says.
CREATE OR REPLACE FUNCTION outbox_merge(succ outbox_receipt, v outbox_view, picks bigint[], suspects boolean[], rows bigint[], keys text[],
	sizes bigint[], waiting text[], log_cut bigint, p_max bigint, p_max_bytes bigint, p_now timestamptz,
	OUT seqs bigint[], OUT flags integer[], OUT stopped boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
	WITH items AS (
		SELECT p.seq, outbox_flag_detour() AS flags, p.suspect,
			coalesce((SELECT outbox_weight(m.payload, m.payload_bin, m.headers) FROM outbox_message m WHERE m.seq = p.seq),
				(SELECT outbox_weight(k.payload, k.payload_bin, k.headers) FROM outbox_kept k WHERE k.seq = p.seq), 0) AS size
		FROM unnest(picks, suspects) p(seq, suspect)
		WHERE p.seq <= log_cut OR NOT EXISTS (SELECT FROM outbox_detour d
			WHERE d.target = succ.target AND d.seq = p.seq AND d.ahead)
		UNION ALL
		SELECT m.seq, CASE WHEN b.seq IS NULL THEN 0 ELSE outbox_flag_blocked() END, false, CASE WHEN b.seq IS NULL THEN m.size ELSE 0 END
		FROM unnest(rows, keys, sizes) m(seq, key, size)
		LEFT JOIN LATERAL outbox_blocker(succ.target, CASE WHEN waiting IS NULL OR m.key = ANY (waiting) THEN m.key END, m.seq, v.hold,
			picks, p_now) b ON true
	), numbered AS (
		SELECT i.*, row_number() OVER w AS i, sum(i.size) OVER w AS bytes,
			coalesce(bool_or(i.suspect) OVER (ORDER BY i.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false)
				AS behind_suspect
		FROM items i WINDOW w AS (ORDER BY i.seq ROWS UNBOUNDED PRECEDING)
	), stop AS (
		SELECT min(n.i) AS at FROM numbered n
		WHERE n.i > p_max OR n.behind_suspect
			OR (n.i > 1 AND (n.suspect OR (n.flags <> outbox_flag_blocked() AND n.bytes > p_max_bytes)))
	)
	SELECT array_agg(n.seq ORDER BY n.seq), array_agg(n.flags ORDER BY n.seq), stop.at IS NOT NULL
	INTO seqs, flags, stopped
	FROM stop LEFT JOIN numbered n ON stop.at IS NULL OR n.i < stop.at GROUP BY stop.at;
END $$;

-- The usual case: all picks are before the rows, and nothing is cut but by count. others: the picks, and which of the rows are
-- blocked. fits: it is that case.
CREATE OR REPLACE FUNCTION outbox_append_rows(succ outbox_receipt, v outbox_view, picks bigint[], rows bigint[], keys text[],
	sizes bigint[], waiting text[], room bigint, p_max_bytes bigint, p_now timestamptz,
	OUT blocked bigint[], OUT flags integer[], OUT fits boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
	weight bigint;
BEGIN
	IF cardinality(rows) > room THEN
		rows := rows[1:room];
		keys := keys[1:room];
		sizes := sizes[1:room];
	END IF;
	IF cardinality(waiting) = 0 THEN
		weight := (SELECT coalesce(sum(s), 0) FROM unnest(sizes) s);
		flags := array_fill(0, ARRAY[cardinality(rows)]);
	ELSE
		SELECT coalesce(sum(m.size), 0), array_agg(m.seq) FILTER (WHERE m.flag <> 0), array_agg(m.flag)
		INTO weight, blocked, flags
		FROM (SELECT u.seq, u.size, CASE WHEN (waiting IS NULL OR u.key IN (SELECT k FROM unnest(waiting) k WHERE k IS NOT NULL))
				AND (SELECT b.seq FROM outbox_blocker(succ.target, u.key, u.seq, v.hold, picks, p_now) b) IS NOT NULL
				THEN outbox_flag_blocked() ELSE 0 END AS flag
			FROM unnest(rows, keys, sizes) u(seq, key, size) OFFSET 0) m;
	END IF;
	IF cardinality(picks) > 0 THEN
		weight := weight + (SELECT coalesce(sum(m.size), 0) FROM unnest(picks) p(seq)
			CROSS JOIN LATERAL (SELECT outbox_weight(o.payload, o.payload_bin, o.headers) AS size FROM outbox_message o
				WHERE o.seq = p.seq ORDER BY o.seq LIMIT 1) m);
	END IF;
	fits := weight <= p_max_bytes;
END $$;

-- Choose a claim: picks of the detours and rows of the window, merged by seq and cut. rows: the next ones of the window, if
-- the caller has read them, each with its key and its weight. seqs: what has to be read, so without those of the rows that
-- the caller has and that are not blocked.
CREATE OR REPLACE FUNCTION outbox_choose(INOUT succ outbox_receipt, v outbox_view, p_late xid8[], p_max bigint, p_max_bytes bigint,
	p_now timestamptz, rows bigint[], keys text[], sizes bigint[], OUT seqs bigint[], OUT flags integer[])
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
	have boolean := rows IS NOT NULL;
	picks bigint[] := '{}';
	suspects boolean[] := '{}';
	waiting text[] := '{}';
	prev pg_snapshot;
	cur pg_snapshot;
	log_cut bigint;
	room bigint;
	blocked bigint[];
	fits boolean := false;
	stopped boolean;
	places tid[];
BEGIN
	IF v.detours THEN
		SELECT coalesce(array_agg(p.seq), '{}'), coalesce(array_agg(p.suspect), '{}') INTO picks, suspects
			FROM outbox_picks(succ.target, succ.lane, v.hold, v.unordered, succ.cur, p_now, p_max, succ.n) p;
		IF NOT v.unordered THEN
			waiting := outbox_waiting_keys(succ.target, succ.lane, v.hold, p_max);
		END IF;
	END IF;
	IF have THEN
		log_cut := rows[cardinality(rows)];
	ELSE
		prev := succ.prev::text; -- by way of text: taken out of a row, a snapshot is packed
		cur := succ.cur::text;
		SELECT coalesce(array_agg(r.seq), '{}'), coalesce(array_agg(r.key), '{}'), coalesce(array_agg(r.size), '{}')
		INTO rows, keys, sizes FROM (
			SELECT w.seq, w.key, outbox_weight(w.payload, w.payload_bin, w.headers) AS size
			FROM outbox_window(greatest(succ.pos, succ.floor), prev, succ.prev_seq, p_late, cur, succ.cur_seq, succ.lane, v.lanes,
				v.types, v.kind, v.published_only, v.bands, v.headers, p_max, outbox_scan_max(), CASE WHEN v.detours THEN succ.target END) w
			-- the union has up to p_max rows of each half: what comes after the first p_max is not known completely
			ORDER BY w.seq LIMIT p_max) r;
		log_cut := CASE WHEN cardinality(rows) >= p_max THEN rows[p_max]
			ELSE outbox_scanned(greatest(succ.pos, succ.floor), succ.prev_seq, succ.cur_seq, outbox_scan_max()) END;
	END IF;

	room := p_max - cardinality(picks);
	IF room >= 0 AND true <> ALL (suspects) AND coalesce(picks[cardinality(picks)] < rows[1], true)
			AND coalesce(picks[cardinality(picks)] <= log_cut, true) AND NOT EXISTS (SELECT FROM outbox_kept) THEN
		SELECT * INTO blocked, flags, fits
			FROM outbox_append_rows(succ, v, picks, rows, keys, sizes, waiting, room, p_max_bytes, p_now);
	END IF;
	IF fits THEN
		room := least(room, cardinality(rows));
		stopped := cardinality(rows) > room;
		succ.claim_count := cardinality(picks) + room;
		succ.claim_detours := cardinality(picks);
		succ.claim_seq := coalesce(picks[1], rows[1], 0);
		succ.claim_last := coalesce(rows[room], picks[cardinality(picks)], 0);
		seqs := picks || CASE WHEN have THEN blocked ELSE rows[1:room] END;
		flags := array_fill(outbox_flag_detour(), ARRAY[cardinality(picks)]) || CASE WHEN have
			THEN array_fill(outbox_flag_blocked(), ARRAY[coalesce(cardinality(blocked), 0)]) ELSE flags END;
	ELSE
		SELECT * INTO seqs, flags, stopped FROM outbox_merge(succ, v, picks, suspects, rows, keys, sizes, waiting, log_cut, p_max,
			p_max_bytes, p_now);
		IF seqs[1] IS NULL THEN
			seqs := '{}';
			flags := '{}';
		END IF;
		succ.claim_count := cardinality(seqs);
		succ.claim_seq := coalesce(seqs[1], 0);
		succ.claim_last := coalesce(seqs[succ.claim_count], 0);
		picks := ARRAY(SELECT u.seq FROM unnest(seqs, flags) u(seq, flags) WHERE u.flags = outbox_flag_detour());
		succ.claim_detours := cardinality(picks);
		IF have THEN
			SELECT array_agg(u.seq), array_agg(u.flag) INTO seqs, flags FROM unnest(seqs, flags) u(seq, flag) WHERE u.flag <> 0;
		END IF;
	END IF;
	IF cardinality(picks) > 0 THEN
		places := outbox_detours_at(succ.target, picks);
		UPDATE outbox_detour d SET state = 'sending', owner = succ.owner, last_status_at = p_now WHERE d.ctid = ANY (places);
	END IF;
	succ.claim_end := greatest(succ.pos, CASE WHEN stopped THEN succ.claim_last ELSE log_cut END);
END $$;

CREATE OR REPLACE FUNCTION outbox_may_claim(q outbox_request, v outbox_view) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT (q).max > 0 AND NOT (v).paused AND (v).version = (q).version
$$;

-- 4. Choose what comes next. claimed: how many; seqs: those that have to be read, with their flags. read_ahead: the caller has the
-- others. If there are none, the position moves past the rows of other lanes.
CREATE OR REPLACE FUNCTION outbox_claim(INOUT succ outbox_receipt, q outbox_request, last outbox_receipt, v outbox_view,
	fresh outbox_moment, now timestamptz, ahead outbox_ahead, OUT claimed bigint, OUT read_ahead boolean, OUT seqs bigint[], OUT flags integer[])
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
	late xid8[];
	chosen record;
	rounds integer := 0;
	done boolean;
BEGIN
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
		-- Rows read ahead were read after the claim of the last receipt, in its window: they are the next ones if the
		-- lane has not moved. They are unchanged, unless somebody amended one. It must be known which keys they have, since
		-- there are detours, and none may be one that an operator acted on before the lane came by.
		read_ahead := late IS NULL AND q.ahead BETWEEN 1 AND q.max AND NOT outbox_is_cautious(succ) AND succ.pos > 0
			AND succ.pos = last.claim_end AND succ.cur_xid = last.cur_xid AND NOT outbox_any_amended(q.ahead_first, q.ahead_last)
			AND cardinality(ahead.seqs) = q.ahead AND NOT EXISTS (SELECT FROM outbox_detour d
				WHERE d.target = q.target AND d.lane = q.lane AND d.ahead);
		IF NOT read_ahead THEN
			ahead := NULL;
		END IF;
		chosen := outbox_choose(succ, v, late, CASE WHEN outbox_is_cautious(succ) THEN 1 ELSE q.max END, q.max_bytes, now,
			ahead.seqs, ahead.keys, ahead.sizes);
		succ := chosen.succ;
		claimed := succ.claim_count;
		seqs := chosen.seqs;
		flags := chosen.flags;
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
