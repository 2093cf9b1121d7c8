-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: queries for deliveries, as people see them.
--
-- Most have no row of their own: their state follows from the message and the receipts of its lane. What
-- a lane has not settled is found without reading what it has. With p its last receipt it is
--     above greatest(pos, prev_seq), along the primary key, and
--     at or below that: of transactions that were running when prev or cur was taken, by their xids,
-- except what outbox_is_settled() says. So finding failed or pending deliveries costs nothing extra in a log
-- of millions; only a list of delivered ones walks the primary key, no further than its page.
--
-- Everything here only reads, in one snapshot: READ ONLY, REPEATABLE READ. Functions without SET are
-- inlined where they are used.

CREATE OR REPLACE FUNCTION outbox_reading_of(t outbox_target) RETURNS outbox_reading
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	v outbox_reading;
	now_at pg_snapshot := pg_current_snapshot();
BEGIN
	v.target := t.name;
	v.start := t.start;
	v.lanes := (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	v.route := (SELECT o FROM outbox_route o WHERE o.target = t.name AND o.version = t.version);
	v.last := ARRAY(SELECT (SELECT r FROM outbox_receipt r WHERE r.target = t.name AND r.lane = l
		ORDER BY r.n DESC LIMIT 1) FROM generate_series(0, v.lanes - 1) l ORDER BY l);
	v.routes := ARRAY(SELECT (SELECT o FROM outbox_route o WHERE o.target = t.name AND o.version = l.route_version)
		FROM unnest(v.last) l ORDER BY l.lane);
	v.late := ARRAY(SELECT DISTINCT x FROM (SELECT DISTINCT prev::text, prev_xid, cur::text, cur_xid FROM unnest(v.last)) l
		(prev, prev_xid, cur, cur_xid) CROSS JOIN LATERAL unnest(
			outbox_late(l.prev::pg_snapshot, l.prev_xid, l.cur::pg_snapshot)
			|| outbox_late(l.cur::pg_snapshot, l.cur_xid, now_at)) x);
	SELECT min(greatest(l.pos, l.prev_seq)), max(l.cur_seq), max(l.claim_last) INTO v.low, v.log_end, v.claim_last
		FROM unnest(v.last) l;
	-- Relays refuse the lane because numbers were used again: messages that have them may be anywhere.
	IF EXISTS (SELECT FROM outbox_lane l WHERE l.target = t.name AND l.refused IS NOT NULL) THEN
		v.low := 0;
		v.late := '{}';
	END IF;
	v.detours := (SELECT d.seq FROM outbox_detour d
		WHERE d.target = t.name AND d.seq > CASE WHEN v.late = '{}' THEN v.low ELSE 0 END
		ORDER BY d.target, d.seq LIMIT 1) IS NOT NULL;
	RETURN v;
END $$;

-- Is a message that is not settled in flight?
CREATE OR REPLACE FUNCTION outbox_is_claimed(xid xid8, seq bigint, p outbox_receipt) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT seq > (p).pos AND seq <= (p).claim_end AND pg_visible_in_snapshot(xid, (p).cur)
		AND (seq > (p).prev_seq OR NOT pg_visible_in_snapshot(xid, (p).prev))
$$;

-- Without regard to bands and headers, for which there are outbox_bands_take() and outbox_headers_take(). (It calls no function of ours, because views are used
-- with any search_path.)
CREATE OR REPLACE FUNCTION outbox_route_takes(type text, kind text, published boolean, r outbox_route) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT ((r).types IS NULL OR type LIKE ANY ((r).types))
		AND ((r).kind IS NULL OR coalesce(kind, 'event') = (r).kind)
		AND coalesce(NOT (r).published_only OR published, false)
$$;

-- What has no detour and is not settled. Two halves, so that each keeps the order of its index; p_after
-- narrows them. OFFSET 0 keeps the planner from changing the order. Above low:
CREATE OR REPLACE FUNCTION outbox_open(v outbox_reading, p_after bigint, p_to bigint)
RETURNS TABLE (seq bigint, id text, type text, key text, lane integer, claimed boolean, owner text,
	event_time timestamptz, created_at timestamptz, claimed_at timestamptz, due_at timestamptz)
LANGUAGE sql STABLE AS $$
	SELECT m.seq, m.id, m.type, m.key, m.slot % (v).lanes, c.claimed, (p.last).owner,
		m.event_time, m.created_at, (p.last).settled_at, m.due_at
	FROM outbox_message m
	CROSS JOIN LATERAL (SELECT (v).last[m.slot % (v).lanes + 1] AS last OFFSET 0) p
	CROSS JOIN LATERAL (SELECT outbox_is_claimed(m.xid, m.seq, p.last) AS claimed OFFSET 0) c
	CROSS JOIN LATERAL (SELECT CASE WHEN c.claimed THEN (v).routes[m.slot % (v).lanes + 1] ELSE (v).route END AS route OFFSET 0) o
	WHERE m.seq > greatest((v).low, p_after) AND m.seq <= p_to
		AND NOT outbox_is_settled(m.xid, m.seq, p.last)
		AND outbox_route_takes(m.type, m.kind, m.published, o.route)
		AND ((o.route).bands IS NULL OR outbox_bands_take((o.route).bands, m.priority, m.seq))
		AND ((o.route).headers IS NULL OR outbox_headers_take((o.route).headers, m.headers))
		AND (NOT (v).detours
			OR NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = (v).target AND d.seq = m.seq OFFSET 0))
$$;

-- At or below low:
CREATE OR REPLACE FUNCTION outbox_open_late(v outbox_reading, p_after bigint)
RETURNS TABLE (seq bigint, id text, type text, key text, lane integer, claimed boolean, owner text,
	event_time timestamptz, created_at timestamptz, claimed_at timestamptz, due_at timestamptz)
LANGUAGE sql STABLE AS $$
	SELECT m.seq, m.id, m.type, m.key, m.slot % (v).lanes, c.claimed, (p.last).owner,
		m.event_time, m.created_at, (p.last).settled_at, m.due_at
	FROM unnest((v).late) t(x)
	-- as rows and ordered, so that no plan walks the primary key instead of (xid, seq)
	CROSS JOIN LATERAL (SELECT o.* FROM outbox_message o
		WHERE (o.xid, o.seq) > (t.x, p_after) AND (o.xid, o.seq) <= (t.x, (v).low) ORDER BY o.xid, o.seq OFFSET 0) m
	CROSS JOIN LATERAL (SELECT (v).last[m.slot % (v).lanes + 1] AS last OFFSET 0) p
	CROSS JOIN LATERAL (SELECT outbox_is_claimed(m.xid, m.seq, p.last) AS claimed OFFSET 0) c
	CROSS JOIN LATERAL (SELECT CASE WHEN c.claimed THEN (v).routes[m.slot % (v).lanes + 1] ELSE (v).route END AS route OFFSET 0) o
	WHERE NOT outbox_is_settled(m.xid, m.seq, p.last)
		AND outbox_route_takes(m.type, m.kind, m.published, o.route)
		AND ((o.route).bands IS NULL OR outbox_bands_take((o.route).bands, m.priority, m.seq))
		AND ((o.route).headers IS NULL OR outbox_headers_take((o.route).headers, m.headers))
		AND (NOT (v).detours
			OR NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = (v).target AND d.seq = m.seq OFFSET 0))
$$;

-- The receipt that delivered a message which its lane has settled and which has no detour. By binary search: what
-- is settled stays settled, and receipts are numbered without gaps. NULL: it was never meant for this target, that
-- is, no claim had it; or retention removed the receipts, which it does not do while such a message needs them.
-- p_hint: the last answer for this lane, which is often right again.
CREATE OR REPLACE FUNCTION outbox_delivered_by(p_xid xid8, p_seq bigint, p_type text, p_kind text, p_published boolean,
	p_priority integer, p_headers text, p_last outbox_receipt, p_hint bigint) RETURNS outbox_receipt
LANGUAGE plpgsql STABLE AS $$
DECLARE
	r outbox_receipt;
	claim outbox_receipt;
	low bigint;
	high bigint := p_last.n;
	middle bigint;
BEGIN
	-- nothing below low has settled it, high has
	SELECT min(n) INTO low FROM outbox_receipt WHERE target = p_last.target AND lane = p_last.lane;
	middle := CASE WHEN p_hint = high THEN high - 1 WHEN p_hint BETWEEN low AND high THEN p_hint
		ELSE low + (high - low) / 2 END;
	WHILE low < high LOOP
		SELECT * INTO r FROM outbox_receipt o
			WHERE o.target = p_last.target AND o.lane = p_last.lane AND o.n = middle;
		IF outbox_is_settled(p_xid, p_seq, r) THEN
			high := middle;
		ELSE
			low := middle + 1;
		END IF;
		-- beside the hint first
		middle := CASE WHEN high = p_hint THEN high - 1 WHEN low = p_hint + 1 THEN low
			ELSE low + (high - low) / 2 END;
		p_hint := NULL;
	END LOOP;
	SELECT * INTO r FROM outbox_receipt o
		WHERE o.target = p_last.target AND o.lane = p_last.lane AND o.n = low;
	SELECT * INTO claim FROM outbox_receipt o
		WHERE o.target = p_last.target AND o.lane = p_last.lane AND o.n = low - 1;
	IF FOUND AND p_seq <= r.settled_to AND outbox_is_claimed(p_xid, p_seq, claim)
		AND EXISTS (SELECT FROM outbox_route o WHERE o.target = p_last.target AND o.version = claim.route_version
			AND outbox_route_takes(p_type, p_kind, p_published, o)
			AND (o.bands IS NULL OR outbox_bands_take(o.bands, p_priority, p_seq))
			AND (o.headers IS NULL OR outbox_headers_take(o.headers, p_headers))) THEN
		RETURN r;
	END IF;
	RETURN NULL;
END $$;

-- Detours with the fields of their messages.
CREATE OR REPLACE VIEW outbox_detoured AS
SELECT d.seq, d.id, d.target, coalesce(m.type, '') AS type, d.key, d.lane, d.state, d.why, d.attempts, d.owner,
	d.last_error, d.reason, m.event_time, m.created_at, d.last_status_at, d.next_attempt_at, d.n
FROM outbox_detour d
LEFT JOIN LATERAL (
	SELECT l.type, l.event_time, l.created_at FROM outbox_message l WHERE l.seq = d.seq
	UNION ALL
	SELECT k.type, k.event_time, k.created_at FROM outbox_kept k WHERE k.seq = d.seq LIMIT 1) m ON true;

-- ---- list --------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION outbox_list_detours(p_target text, f outbox_wanted) RETURNS SETOF outbox_look
LANGUAGE sql STABLE AS $$
	SELECT d.seq, d.id, d.target, d.type, d.key, d.lane, d.state, CASE WHEN d.state = 'pending' THEN d.why END,
		d.attempts, d.owner, d.last_error, d.reason, d.event_time, d.created_at, d.last_status_at, d.next_attempt_at
	FROM unnest((f).states) s CROSS JOIN LATERAL (
		SELECT * FROM outbox_detoured o
		WHERE (f).seqs IS NULL AND o.target = p_target AND o.state = s AND o.seq > (f).after
			AND ((f).why IS NULL OR o.why = (f).why)
			AND ((f).key IS NULL OR o.key = (f).key)
			AND ((f).type IS NULL OR o.type LIKE (f).type)
			AND ((f).changed_before IS NULL OR o.last_status_at <= (f).changed_before)
			AND ((f).created_before IS NULL OR coalesce(o.created_at <= (f).created_before, true))
		ORDER BY o.seq LIMIT (f).max) d
	UNION ALL
	SELECT d.seq, d.id, d.target, d.type, d.key, d.lane, d.state, CASE WHEN d.state = 'pending' THEN d.why END,
		d.attempts, d.owner, d.last_error, d.reason, d.event_time, d.created_at, d.last_status_at, d.next_attempt_at
	FROM unnest((f).seqs) s JOIN outbox_detoured d ON d.target = p_target AND d.seq = s
	WHERE d.state = ANY ((f).states) AND d.seq > (f).after
		AND ((f).why IS NULL OR d.why = (f).why)
		AND ((f).key IS NULL OR d.key = (f).key)
		AND ((f).type IS NULL OR d.type LIKE (f).type)
		AND ((f).changed_before IS NULL OR d.last_status_at <= (f).changed_before)
		AND ((f).created_before IS NULL OR coalesce(d.created_at <= (f).created_before, true))
$$;

-- Why a message that its lane has not read is pending.
CREATE OR REPLACE FUNCTION outbox_why_unread(p_paused boolean, p_due_at timestamptz, p_now timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT CASE WHEN p_due_at > p_now THEN 'deferred' WHEN p_paused THEN 'paused' ELSE 'new' END
$$;

-- Pending and sending ones.
CREATE OR REPLACE FUNCTION outbox_list_unsettled(t outbox_target, v outbox_reading, f outbox_wanted) RETURNS SETOF outbox_look
LANGUAGE plpgsql STABLE AS $$
DECLARE
	stop bigint := CASE WHEN 'pending' = ANY (f.states) THEN 9223372036854775807 ELSE v.claim_last END;
BEGIN
	RETURN QUERY
	SELECT u.seq, u.id, v.target, u.type, u.key, u.lane, CASE WHEN u.claimed THEN 'sending' ELSE 'pending' END,
		CASE WHEN NOT u.claimed THEN outbox_why_unread(t.paused, u.due_at, f.now) END, 0, CASE WHEN u.claimed THEN u.owner END, NULL::text, NULL::text,
		u.event_time, u.created_at, CASE WHEN u.claimed THEN u.claimed_at END, NULL::timestamptz
	FROM (
		(SELECT * FROM outbox_open(v, f.after, stop) n
		WHERE CASE WHEN n.claimed THEN 'sending' ELSE 'pending' END = ANY (f.states)
			AND (f.why IS NULL OR NOT n.claimed AND outbox_why_unread(t.paused, n.due_at, f.now) = f.why)
			AND (f.key IS NULL OR n.key = f.key)
			AND (f.type IS NULL OR n.type LIKE f.type)
			AND (f.changed_before IS NULL OR NOT n.claimed OR n.claimed_at <= f.changed_before)
			AND (f.created_before IS NULL OR n.created_at <= f.created_before)
		ORDER BY n.seq LIMIT f.max)
		UNION ALL
		(SELECT * FROM outbox_open_late(v, f.after) n
		WHERE CASE WHEN n.claimed THEN 'sending' ELSE 'pending' END = ANY (f.states)
			AND (f.why IS NULL OR NOT n.claimed AND outbox_why_unread(t.paused, n.due_at, f.now) = f.why)
			AND (f.key IS NULL OR n.key = f.key)
			AND (f.type IS NULL OR n.type LIKE f.type)
			AND (f.changed_before IS NULL OR NOT n.claimed OR n.claimed_at <= f.changed_before)
			AND (f.created_before IS NULL OR n.created_at <= f.created_before)
		ORDER BY n.seq LIMIT f.max)
	) u;
END $$;

-- The state of a message that has no detour. state NULL: it is not meant for this target. hint: see above.
CREATE OR REPLACE FUNCTION outbox_look_at(m outbox_message, t outbox_target, v outbox_reading, INOUT hint bigint,
	OUT d outbox_look)
LANGUAGE plpgsql STABLE AS $$
DECLARE
	i integer := m.slot % v.lanes + 1;
	p outbox_receipt := v.last[i];
BEGIN
	IF pg_visible_in_snapshot(m.xid, v.start) THEN
		RETURN;
	ELSIF outbox_is_settled(m.xid, m.seq, p) THEN
		p := outbox_delivered_by(m.xid, m.seq, m.type, m.kind, m.published, m.priority, m.headers, p, hint);
		IF p.n IS NULL THEN
			RETURN;
		END IF;
		hint := p.n;
		d.state := 'delivered';
		d.owner := p.owner;
		d.last_status_at := p.settled_at;
	ELSIF outbox_is_claimed(m.xid, m.seq, p) THEN
		IF outbox_route_takes(m.type, m.kind, m.published, v.routes[i])
				AND ((v.routes[i]).bands IS NULL OR outbox_bands_take((v.routes[i]).bands, m.priority, m.seq))
				AND ((v.routes[i]).headers IS NULL OR outbox_headers_take((v.routes[i]).headers, m.headers)) THEN
			d.state := 'sending';
			d.owner := p.owner;
			d.last_status_at := p.settled_at;
		END IF;
	ELSIF outbox_route_takes(m.type, m.kind, m.published, v.route)
			AND ((v.route).bands IS NULL OR outbox_bands_take((v.route).bands, m.priority, m.seq))
			AND ((v.route).headers IS NULL OR outbox_headers_take((v.route).headers, m.headers)) THEN
		d.state := 'pending';
		d.why := CASE WHEN t.paused THEN 'paused' ELSE 'new' END;
	END IF;
	d.seq := m.seq;
	d.id := m.id;
	d.target := t.name;
	d.type := m.type;
	d.key := m.key;
	d.lane := i - 1;
	d.attempts := 0;
	d.event_time := m.event_time;
	d.created_at := m.created_at;
END $$;

-- Along the log, or only the given messages.
CREATE OR REPLACE FUNCTION outbox_list_log(t outbox_target, v outbox_reading, f outbox_wanted) RETURNS SETOF outbox_look
LANGUAGE plpgsql STABLE AS $$
DECLARE
	stop bigint := CASE WHEN 'pending' = ANY (f.states) THEN 9223372036854775807 ELSE v.log_end END;
	rows refcursor;
	m outbox_message;
	hints bigint[] := array_fill(NULL::bigint, ARRAY[v.lanes]);
	seen record;
	d outbox_look;
	found_so_far bigint := 0;
BEGIN
	IF f.seqs IS NOT NULL THEN
		OPEN rows NO SCROLL FOR SELECT * FROM outbox_message l
			WHERE l.seq = ANY (f.seqs) AND l.seq > f.after ORDER BY l.seq;
	ELSE
		OPEN rows NO SCROLL FOR SELECT * FROM outbox_message l
			WHERE l.seq > f.after AND l.seq <= stop
				AND (f.key IS NULL OR l.key = f.key)
				AND (f.type IS NULL OR l.type LIKE f.type)
				AND (f.created_before IS NULL OR l.created_at <= f.created_before)
			ORDER BY l.seq;
	END IF;
	LOOP
		FETCH rows INTO m;
		EXIT WHEN NOT FOUND;
		CONTINUE WHEN EXISTS (SELECT FROM outbox_detour o WHERE o.target = t.name AND o.seq = m.seq);
		seen := outbox_look_at(m, t, v, hints[m.slot % v.lanes + 1]);
		hints[m.slot % v.lanes + 1] := seen.hint;
		d := seen.d;
		IF d.why IS NOT NULL THEN
			d.why := outbox_why_unread(t.paused, m.due_at, f.now);
		END IF;
		CONTINUE WHEN d.state IS NULL OR d.state <> ALL (f.states)
			OR (f.why IS NOT NULL AND d.why IS DISTINCT FROM f.why)
			OR (f.key IS NOT NULL AND m.key IS DISTINCT FROM f.key)
			OR NOT (f.type IS NULL OR m.type LIKE f.type)
			OR m.created_at > f.created_before OR d.last_status_at > f.changed_before;
		RETURN NEXT d;
		found_so_far := found_so_far + 1;
		EXIT WHEN found_so_far >= f.max;
	END LOOP;
	CLOSE rows;
END $$;

-- Deliveries after (p_after_seq, p_after_target), up to p_max of every target and in any order; the caller
-- sorts and cuts. p_type is a glob.
CREATE OR REPLACE FUNCTION outbox_list(p_ids text[], p_target text, p_type text, p_key text, p_states text[], p_why text,
	p_changed_before timestamptz, p_created_before timestamptz, p_after_seq bigint, p_after_target text, p_max bigint,
	p_now timestamptz DEFAULT NULL)
RETURNS SETOF outbox_look
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
	f outbox_wanted := ROW(p_states, p_why, outbox_like(p_type), p_key, p_changed_before, p_created_before, NULL, 0, p_max,
		outbox_now(p_now));
	t outbox_target;
	v outbox_reading;
BEGIN
	IF cardinality(p_ids) > 0 THEN
		f.seqs := ARRAY(SELECT m.seq FROM outbox_message m WHERE m.id = ANY (p_ids)
			UNION SELECT k.seq FROM outbox_kept k WHERE k.id = ANY (p_ids));
	END IF;
	FOR t IN SELECT * FROM outbox_target WHERE p_target IS NULL OR name = p_target LOOP
		f.after := p_after_seq - (t.name COLLATE "C" > p_after_target)::integer;
		IF f.why IS NULL OR f.why NOT IN ('new', 'paused') THEN
			RETURN QUERY SELECT * FROM outbox_list_detours(t.name, f);
		END IF;
		IF NOT f.states && '{pending,sending,delivered}'
			OR f.why NOT IN ('deferred', CASE WHEN t.paused THEN 'paused' ELSE 'new' END) THEN
			CONTINUE;
		END IF;
		v := outbox_reading_of(t);
		IF f.seqs IS NOT NULL OR 'delivered' = ANY (f.states) THEN
			RETURN QUERY SELECT * FROM outbox_list_log(t, v, f);
		ELSE
			RETURN QUERY SELECT * FROM outbox_list_unsettled(t, v, f);
		END IF;
	END LOOP;
END $$;

-- One complete message.
CREATE OR REPLACE FUNCTION outbox_get(p_id text) RETURNS SETOF outbox_message
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT m.* FROM outbox_message m WHERE m.id = p_id
	UNION ALL SELECT m.* FROM outbox_kept k CROSS JOIN LATERAL outbox_kept_message(k) m WHERE k.id = p_id LIMIT 1
$$;

-- Newest first. p_id NULL: all.
CREATE OR REPLACE FUNCTION outbox_read_audit(p_id text, p_max bigint) RETURNS SETOF outbox_audit
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	(SELECT * FROM outbox_audit a WHERE p_id IS NULL ORDER BY a.number DESC LIMIT p_max)
	UNION ALL
	(SELECT * FROM outbox_audit a WHERE a.id = p_id ORDER BY a.number DESC LIMIT p_max)
$$;
