-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL, version 2: bands of priority (above 0 high, 0 or NULL normal, below 0 low).
--
-- Which bands a version of a target's routing takes stands in outbox_route.kind, which every reader of the log is
-- handed already: 'event', 'command', NULL for both, or KIND {BANDS}, where KIND is *, event or command and BANDS are
-- pairs, a place in the log and what is taken behind it (1 high + 2 normal + 4 low; 8 none), up to the next place. What
-- the first place is does not matter to readers: it is where a new family began. A target without bands is
-- read as it was before.

ALTER TABLE outbox_target ADD COLUMN band_of text; -- the target whose messages are split up; NULL: none

-- Does a condition KIND {BANDS} take a message? (No function of ours in it: views are asked under any search_path.)
CREATE FUNCTION outbox_kind_takes(condition text, kind text, priority integer, seq bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	bands bigint[] := split_part(condition, ' ', 2);
	i integer := cardinality(bands);
BEGIN
	IF split_part(condition, ' ', 1) NOT IN ('*', coalesce(kind, 'event')) THEN
		RETURN false;
	END IF;
	WHILE i > 2 AND seq <= bands[i - 1] LOOP
		i := i - 2;
	END LOOP;
	RETURN bands[i] & CASE WHEN priority > 0 THEN 1 WHEN priority < 0 THEN 4 ELSE 2 END <> 0;
END $$;

-- The kind under which outbox_route_takes() is to be asked for such a route: the condition itself where it takes the
-- message.
CREATE FUNCTION outbox_kind_as(condition text, kind text, priority integer, seq bigint) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	bands bigint[] := split_part(condition, ' ', 2);
	i integer := cardinality(bands);
BEGIN
	IF split_part(condition, ' ', 1) NOT IN ('*', coalesce(kind, 'event')) THEN
		RETURN kind;
	END IF;
	WHILE i > 2 AND seq <= bands[i - 1] LOOP
		i := i - 2;
	END LOOP;
	RETURN CASE WHEN bands[i] & CASE WHEN priority > 0 THEN 1 WHEN priority < 0 THEN 4 ELSE 2 END <> 0
		THEN condition ELSE kind END;
END $$;

-- ---- reading ------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION outbox_stretch(low bigint, high bigint, prev pg_snapshot, cur pg_snapshot, lane integer, lanes integer,
	types text[], kind text, published_only boolean, every boolean DEFAULT false) RETURNS SETOF outbox_message
LANGUAGE sql STABLE ROWS 500 AS $$
	SELECT m.* FROM outbox_message m
	WHERE m.seq > low AND m.seq <= high AND (every OR (m.slot % lanes = lane
		AND NOT pg_visible_in_snapshot(m.xid, prev) AND pg_visible_in_snapshot(m.xid, cur)
		AND (types IS NULL OR m.type LIKE ANY (types))
		AND (outbox_stretch.kind IS NULL OR CASE WHEN outbox_stretch.kind LIKE '% %'
			THEN outbox_kind_takes(outbox_stretch.kind, m.kind, m.priority, m.seq)
			ELSE coalesce(m.kind, 'event') = outbox_stretch.kind END)
		AND (NOT published_only OR m.published)))
$$;

CREATE OR REPLACE FUNCTION outbox_window(pos bigint, prev pg_snapshot, prev_seq bigint, late xid8[], cur pg_snapshot, cur_seq bigint,
	lane integer, lanes integer, types text[], kind text, published_only boolean,
	max bigint, scan bigint, skip text DEFAULT NULL) RETURNS SETOF outbox_message
LANGUAGE sql STABLE ROWS 500 AS $$
	(SELECT l.* FROM unnest(late) AS x CROSS JOIN LATERAL (
		SELECT m.* FROM outbox_message m
		-- as rows, and in the order of (xid, seq), so that no plan walks the primary key instead: the callers switch
		-- sorting off. Once more by seq alone, which tells partitions apart
		WHERE (m.xid, m.seq) > (x, pos) AND (m.xid, m.seq) <= (x, prev_seq) AND m.seq > pos AND m.seq <= prev_seq
			AND m.slot % lanes = lane
			AND (types IS NULL OR m.type LIKE ANY (types))
			AND (outbox_window.kind IS NULL OR CASE WHEN outbox_window.kind LIKE '% %'
			THEN outbox_kind_takes(outbox_window.kind, m.kind, m.priority, m.seq)
			ELSE coalesce(m.kind, 'event') = outbox_window.kind END)
			AND (NOT published_only OR m.published)
			AND (skip IS NULL OR NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = skip AND d.seq = m.seq))
		ORDER BY m.xid, m.seq LIMIT max) l
	ORDER BY l.seq LIMIT max)
	UNION ALL
	(SELECT m.* FROM outbox_stretch(greatest(pos, prev_seq), outbox_reach(pos, prev_seq, cur_seq, scan), prev, cur, lane,
		lanes, types, outbox_window.kind, published_only) m
	WHERE skip IS NULL OR NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = skip AND d.seq = m.seq)
	ORDER BY m.seq LIMIT max)
$$;

-- ---- looking ------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION outbox_unsettled(v outbox_reading, p_after bigint, p_to bigint)
RETURNS TABLE (seq bigint, id text, type text, key text, lane integer, claimed boolean, owner text,
	event_time timestamptz, created_at timestamptz, claimed_at timestamptz)
LANGUAGE sql STABLE AS $$
	SELECT m.seq, m.id, m.type, m.key, m.slot % (v).lanes, c.claimed, (p.last).owner,
		m.event_time, m.created_at, (p.last).settled_at
	FROM outbox_message m
	CROSS JOIN LATERAL (SELECT (v).last[m.slot % (v).lanes + 1] AS last OFFSET 0) p
	CROSS JOIN LATERAL (SELECT outbox_is_claimed(m.xid, m.seq, p.last) AS claimed OFFSET 0) c
	WHERE m.seq > greatest((v).low, p_after) AND m.seq <= p_to
		AND NOT outbox_is_settled(m.xid, m.seq, p.last)
		AND CASE WHEN c.claimed THEN outbox_route_takes(m.type, CASE WHEN ((v).routes[m.slot % (v).lanes + 1]).kind LIKE '% %' THEN outbox_kind_as(((v).routes[m.slot % (v).lanes + 1]).kind, m.kind, m.priority, m.seq)
			ELSE m.kind END, m.published, (v).routes[m.slot % (v).lanes + 1])
			ELSE outbox_route_takes(m.type, CASE WHEN ((v).route).kind LIKE '% %' THEN outbox_kind_as(((v).route).kind, m.kind, m.priority, m.seq)
			ELSE m.kind END, m.published, (v).route) END
		AND (NOT (v).detours
			OR NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = (v).target AND d.seq = m.seq OFFSET 0))
$$;

CREATE OR REPLACE FUNCTION outbox_unsettled_late(v outbox_reading, p_after bigint)
RETURNS TABLE (seq bigint, id text, type text, key text, lane integer, claimed boolean, owner text,
	event_time timestamptz, created_at timestamptz, claimed_at timestamptz)
LANGUAGE sql STABLE AS $$
	SELECT m.seq, m.id, m.type, m.key, m.slot % (v).lanes, c.claimed, (p.last).owner,
		m.event_time, m.created_at, (p.last).settled_at
	FROM unnest((v).late) x
	-- as rows and ordered, so that no plan walks the primary key instead of (xid, seq)
	CROSS JOIN LATERAL (SELECT * FROM outbox_message o
		WHERE (o.xid, o.seq) > (x, p_after) AND (o.xid, o.seq) <= (x, (v).low) ORDER BY o.xid, o.seq OFFSET 0) m
	CROSS JOIN LATERAL (SELECT (v).last[m.slot % (v).lanes + 1] AS last OFFSET 0) p
	CROSS JOIN LATERAL (SELECT outbox_is_claimed(m.xid, m.seq, p.last) AS claimed OFFSET 0) c
	WHERE NOT outbox_is_settled(m.xid, m.seq, p.last)
		AND CASE WHEN c.claimed THEN outbox_route_takes(m.type, CASE WHEN ((v).routes[m.slot % (v).lanes + 1]).kind LIKE '% %' THEN outbox_kind_as(((v).routes[m.slot % (v).lanes + 1]).kind, m.kind, m.priority, m.seq)
			ELSE m.kind END, m.published, (v).routes[m.slot % (v).lanes + 1])
			ELSE outbox_route_takes(m.type, CASE WHEN ((v).route).kind LIKE '% %' THEN outbox_kind_as(((v).route).kind, m.kind, m.priority, m.seq)
			ELSE m.kind END, m.published, (v).route) END
		AND (NOT (v).detours
			OR NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = (v).target AND d.seq = m.seq OFFSET 0))
$$;

CREATE FUNCTION outbox_delivered_by(p_xid xid8, p_seq bigint, p_type text, p_kind text, p_published boolean,
	p_priority integer, p_last outbox_receipt, p_hint bigint) RETURNS outbox_receipt
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
			AND outbox_route_takes(p_type, CASE WHEN o.kind LIKE '% %' THEN outbox_kind_as(o.kind, p_kind, p_priority, p_seq)
				ELSE p_kind END, p_published, o)) THEN
		RETURN r;
	END IF;
	RETURN NULL;
END $$;

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
		p := outbox_delivered_by(m.xid, m.seq, m.type, m.kind, m.published, m.priority, p, hint);
		IF p.n IS NULL THEN
			RETURN;
		END IF;
		hint := p.n;
		d.state := 'delivered';
		d.owner := p.owner;
		d.last_status_at := p.settled_at;
	ELSIF outbox_is_claimed(m.xid, m.seq, p) THEN
		IF outbox_route_takes(m.type, CASE WHEN (v.routes[i]).kind LIKE '% %' THEN outbox_kind_as((v.routes[i]).kind, m.kind, m.priority, m.seq)
			ELSE m.kind END, m.published, v.routes[i]) THEN
			d.state := 'sending';
			d.owner := p.owner;
			d.last_status_at := p.settled_at;
		END IF;
	ELSIF outbox_route_takes(m.type, CASE WHEN (v.route).kind LIKE '% %' THEN outbox_kind_as((v.route).kind, m.kind, m.priority, m.seq)
			ELSE m.kind END, m.published, v.route) THEN
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

CREATE OR REPLACE FUNCTION outbox_is_routed(m outbox_message, p_target text, p_version bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
	SELECT EXISTS (SELECT FROM outbox_route r WHERE r.target = p_target AND r.version = p_version
		AND outbox_route_takes((m).type, CASE WHEN r.kind LIKE '% %'
			THEN outbox_kind_as(r.kind, (m).kind, (m).priority, (m).seq) ELSE (m).kind END, (m).published, r))
$$;

CREATE FUNCTION outbox_delivery_receipt(p_xid xid8, p_seq bigint, p_type text, p_kind text, p_published boolean,
	p_priority integer, p_last outbox_receipt) RETURNS outbox_receipt
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT outbox_delivered_by(p_xid, p_seq, p_type, p_kind, p_published, p_priority, p_last, NULL)
$$;

CREATE OR REPLACE VIEW outbox_unread AS
SELECT m.seq, m.id, t.name AS target, t.paused, m.type, m.key, m.slot % v.lanes AS lane, v.claim_last,
	c.claimed, (p.last).owner, m.event_time, m.created_at, (p.last).settled_at AS claimed_at
FROM outbox_target t
CROSS JOIN LATERAL outbox_reading_of(t) v
CROSS JOIN LATERAL (
	SELECT o.* FROM outbox_message o WHERE o.seq > v.low
	UNION ALL
	SELECT * FROM outbox_late_messages(v.late, v.low)) m
CROSS JOIN LATERAL (SELECT v.last[m.slot % v.lanes + 1] AS last OFFSET 0) p
CROSS JOIN LATERAL (SELECT outbox_is_claimed(m.xid, m.seq, p.last) AS claimed OFFSET 0) c
WHERE NOT outbox_is_settled(m.xid, m.seq, p.last)
	AND CASE WHEN c.claimed THEN outbox_route_takes(m.type, CASE WHEN (v.routes[m.slot % v.lanes + 1]).kind LIKE '% %' THEN outbox_kind_as((v.routes[m.slot % v.lanes + 1]).kind, m.kind, m.priority, m.seq)
			ELSE m.kind END, m.published, v.routes[m.slot % v.lanes + 1])
		ELSE outbox_route_takes(m.type, CASE WHEN (v.route).kind LIKE '% %' THEN outbox_kind_as((v.route).kind, m.kind, m.priority, m.seq)
			ELSE m.kind END, m.published, v.route) END
	AND (NOT v.detours
		OR NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = t.name AND d.seq = m.seq OFFSET 0));

CREATE OR REPLACE VIEW outbox_delivery AS
SELECT d.seq, d.id, d.target, d.type, d.key, d.lane, d.state, CASE WHEN d.state = 'pending' THEN d.why END AS why,
	d.attempts, d.owner, d.last_error, d.reason, d.event_time, d.created_at, d.last_status_at, d.next_attempt_at
FROM outbox_detoured d
UNION ALL
SELECT m.seq, m.id, t.name, m.type, m.key, m.slot % v.lanes, 'delivered', NULL,
	0, r.owner, NULL, NULL, m.event_time, m.created_at, r.settled_at, NULL
FROM outbox_target t
CROSS JOIN LATERAL outbox_reading_of(t) v
CROSS JOIN outbox_message m
CROSS JOIN LATERAL (SELECT v.last[m.slot % v.lanes + 1] AS last OFFSET 0) p
CROSS JOIN LATERAL outbox_delivery_receipt(m.xid, m.seq, m.type, m.kind, m.published, m.priority, p.last) r
WHERE NOT pg_visible_in_snapshot(m.xid, t.start) AND outbox_is_settled(m.xid, m.seq, p.last) AND r.n IS NOT NULL
	AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = t.name AND d.seq = m.seq)
UNION ALL
SELECT m.seq, m.id, m.target, m.type, m.key, m.lane, 'sending', NULL,
	0, m.owner, NULL, NULL, m.event_time, m.created_at, m.claimed_at, NULL
FROM outbox_unread m WHERE m.claimed AND m.seq <= m.claim_last
UNION ALL
SELECT m.seq, m.id, m.target, m.type, m.key, m.lane, 'pending', CASE WHEN m.paused THEN 'paused' ELSE 'new' END,
	0, NULL, NULL, NULL, m.event_time, m.created_at, NULL, NULL
FROM outbox_unread m WHERE NOT m.claimed;
