-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: views for people to query.

-- The last receipt of every lane. pos: settled up to here, except late commits; in flight: up to claim_end.
CREATE OR REPLACE VIEW outbox_position AS
SELECT l.target, l.lane, l.owner AS lease_owner, l.lease_until, l.takeovers AS takeovers_ever,
	r.n, r.owner, r.settled_at, r.route_version, greatest(r.pos, r.prev_seq) AS pos,
	least(greatest(r.claim_end, r.prev_seq), r.cur_seq) AS claim_end, r.claim_count, r.delivered_total
FROM outbox_lane l
CROSS JOIN LATERAL (SELECT c.n, c.owner, c.settled_at, c.route_version, c.pos, c.prev_seq, c.claim_end, c.cur_seq,
		c.claim_count, c.delivered_total FROM outbox_receipt c WHERE c.target = l.target AND c.lane = l.lane
	ORDER BY c.n DESC LIMIT 1) r;

-- What a function without SET means depends on the caller's search_path: views need these.
CREATE OR REPLACE FUNCTION outbox_delivery_receipt(p_xid xid8, p_seq bigint, p_type text, p_kind text, p_published boolean,
	p_priority integer, p_headers text, p_last outbox_receipt) RETURNS outbox_receipt
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT outbox_delivered_by(p_xid, p_seq, p_type, p_kind, p_published, p_priority, p_headers, p_last, NULL)
$$;

CREATE OR REPLACE FUNCTION outbox_late_messages(p_late xid8[], p_to bigint) RETURNS SETOF outbox_message
LANGUAGE sql STABLE ROWS 10 SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT l.* FROM unnest(p_late) t(x) CROSS JOIN LATERAL (SELECT o.* FROM outbox_message o
		WHERE (o.xid, o.seq) >= (t.x, 0) AND (o.xid, o.seq) <= (t.x, p_to) ORDER BY o.xid, o.seq OFFSET 0) l
$$;

-- What has no detour and is not settled: outbox_open() and outbox_open_late() as a view.
CREATE OR REPLACE VIEW outbox_unread AS
SELECT m.seq, m.id, t.name AS target, t.paused, m.type, m.key, m.slot % v.lanes AS lane, v.claim_last,
	c.claimed, (p.last).owner, m.event_time, m.created_at, (p.last).settled_at AS claimed_at, m.due_at
FROM outbox_target t
CROSS JOIN LATERAL outbox_reading_of(t) v
CROSS JOIN LATERAL (
	SELECT o.xid, o.seq, o.slot, o.id, o.type, o.key, o.kind, o.published, o.priority, o.headers, o.event_time, o.created_at, o.due_at
	FROM outbox_message o WHERE o.seq > v.low
	UNION ALL
	SELECT o.xid, o.seq, o.slot, o.id, o.type, o.key, o.kind, o.published, o.priority, o.headers, o.event_time, o.created_at, o.due_at
	FROM outbox_late_messages(v.late, v.low) o) m
CROSS JOIN LATERAL (SELECT v.last[m.slot % v.lanes + 1] AS last OFFSET 0) p
CROSS JOIN LATERAL (SELECT outbox_is_claimed(m.xid, m.seq, p.last) AS claimed OFFSET 0) c
CROSS JOIN LATERAL (SELECT CASE WHEN c.claimed THEN v.routes[m.slot % v.lanes + 1] ELSE v.route END AS route OFFSET 0) o
WHERE NOT outbox_is_settled(m.xid, m.seq, p.last)
	AND outbox_route_takes(m.type, m.kind, m.published, o.route)
	AND ((o.route).bands IS NULL OR outbox_bands_take((o.route).bands, m.priority, m.seq))
	AND ((o.route).headers IS NULL OR outbox_headers_take((o.route).headers, m.headers))
	AND (NOT v.detours
		OR NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = t.name AND d.seq = m.seq OFFSET 0));

-- Every message x every target it is routed to. WHERE state = 'failed' reads detours only.
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
CROSS JOIN LATERAL outbox_delivery_receipt(m.xid, m.seq, m.type, m.kind, m.published, m.priority, m.headers, p.last) r
WHERE NOT pg_visible_in_snapshot(m.xid, t.start) AND outbox_is_settled(m.xid, m.seq, p.last) AND r.n IS NOT NULL
	AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = t.name AND d.seq = m.seq)
UNION ALL
SELECT m.seq, m.id, m.target, m.type, m.key, m.lane, 'sending', NULL,
	0, m.owner, NULL, NULL, m.event_time, m.created_at, m.claimed_at, NULL
FROM outbox_unread m WHERE m.claimed AND m.seq <= m.claim_last
UNION ALL
SELECT m.seq, m.id, m.target, m.type, m.key, m.lane, 'pending', outbox_why_unread(m.paused, m.due_at, now()),
	0, NULL, NULL, NULL, m.event_time, m.created_at, NULL, NULL
FROM outbox_unread m WHERE NOT m.claimed;

CREATE OR REPLACE VIEW outbox_failed AS
SELECT d.seq, d.id, d.target, d.type, d.key, d.lane, d.attempts, d.owner, d.last_error,
	d.event_time, d.created_at, d.last_status_at AS failed_at
FROM outbox_target t JOIN outbox_detoured d ON d.target = t.name AND d.state = 'failed';

-- Per target, what is left to do. Counts stop at 100,001, which means "more than 100,000".
CREATE OR REPLACE VIEW outbox_backlog AS
SELECT t.name AS target, t.paused,
	(SELECT c.pending FROM outbox_count_unsettled(t, 100001, now()) c) AS pending,
	(SELECT coalesce(sum(p.claim_count), 0) FROM outbox_position p WHERE p.target = t.name) AS sending,
	(SELECT count(*) FROM (SELECT FROM outbox_detour d
		WHERE d.target = t.name AND d.state = 'pending' AND d.why = 'retry' LIMIT 100001) n) AS waiting,
	(SELECT count(*) FROM (SELECT FROM outbox_detour d
		WHERE d.target = t.name AND d.state = 'pending' AND d.why = 'deferred' LIMIT 100001) n) AS deferred,
	(SELECT count(*) FROM (SELECT FROM outbox_detour d
		WHERE d.target = t.name AND d.state = 'pending' AND d.why = 'parked' LIMIT 100001) n) AS parked,
	(SELECT count(*) FROM (SELECT FROM outbox_detour d
		WHERE d.target = t.name AND d.state = 'failed' LIMIT 100001) n) AS failed,
	(SELECT coalesce(sum(p.delivered_total), 0)::bigint FROM outbox_position p WHERE p.target = t.name) AS delivered
FROM outbox_target t;
