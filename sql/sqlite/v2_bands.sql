-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite, version 2: bands of priority (above 0 high, 0 or NULL normal, below 0 low).

ALTER TABLE outbox_target ADD COLUMN band_of TEXT; -- the target whose messages are split up; NULL: none

-- Which bands a version of a target's routing takes: behind this place in the log, up to the next row's. A
-- version without rows takes all. The first row's place is 0, or below: the negative of where its target began.
CREATE TABLE outbox_band (
	target TEXT NOT NULL,
	version INTEGER NOT NULL,
	above INTEGER NOT NULL,
	bands INTEGER NOT NULL, -- 1 high + 2 normal + 4 low; 8 none
	PRIMARY KEY (target, version, above)
) WITHOUT ROWID;

DROP VIEW outbox_delivery;

-- Every message x every target it is routed to. WHERE state = 'failed' reads detours only.
CREATE VIEW outbox_delivery AS
SELECT d.seq, d.id, d.target, m.type, d.key, d.lane, d.state,
	CASE WHEN d.state = 'pending' THEN d.why END AS why,
	d.attempts, d.owner, d.last_error, d.reason, m.event_time, m.created_at, d.last_status_at,
	d.next_attempt_at
FROM outbox_detour d LEFT JOIN outbox_message m ON m.seq = d.seq
UNION ALL
SELECT m.seq, m.id, p.target, m.type, m.key, p.lane, 'delivered', NULL,
	0, r.owner, NULL, NULL, m.event_time, m.created_at, r.settled_at, NULL
FROM outbox_target t
CROSS JOIN outbox_log m ON m.seq > t.start_seq
CROSS JOIN outbox_position p ON p.target = t.name
	AND p.lane = m.slot % (SELECT value FROM outbox_meta WHERE name = 'lanes') AND m.seq <= p.pos
CROSS JOIN outbox_receipt r ON r.number = (
	SELECT c.number FROM outbox_receipt c
	WHERE c.target = p.target AND c.lane = p.lane AND c.pos >= m.seq ORDER BY c.pos, c.n LIMIT 1)
	AND r.from_seq < m.seq
WHERE NOT EXISTS (SELECT 1 FROM outbox_detour d WHERE d.target = p.target AND d.seq = m.seq)
	AND EXISTS (SELECT 1 FROM outbox_route o
		WHERE o.target = p.target AND o.version = r.route_version AND m.type GLOB o.type_glob
		AND coalesce(m.kind, 'event') = coalesce(o.kind, m.kind, 'event')
		AND coalesce(m.published, 0) >= o.published_only
		AND CASE WHEN m.priority > 0 THEN 1 WHEN m.priority < 0 THEN 4 ELSE 2 END
			& coalesce((SELECT b.bands FROM outbox_band b WHERE b.target = o.target AND b.version = o.version
				AND b.above < m.seq ORDER BY b.above DESC LIMIT 1), 7))
UNION ALL
SELECT m.seq, m.id, p.target, m.type, m.key, p.lane, 'sending', NULL,
	0, p.owner, NULL, NULL, m.event_time, m.created_at, p.settled_at, NULL
FROM outbox_position p
CROSS JOIN outbox_log m ON m.seq > p.pos AND m.seq <= p.claim_end
	AND p.lane = m.slot % (SELECT value FROM outbox_meta WHERE name = 'lanes')
WHERE NOT EXISTS (SELECT 1 FROM outbox_detour d WHERE d.target = p.target AND d.seq = m.seq)
	AND EXISTS (SELECT 1 FROM outbox_route o
		WHERE o.target = p.target AND o.version = p.route_version AND m.type GLOB o.type_glob
		AND coalesce(m.kind, 'event') = coalesce(o.kind, m.kind, 'event')
		AND coalesce(m.published, 0) >= o.published_only
		AND CASE WHEN m.priority > 0 THEN 1 WHEN m.priority < 0 THEN 4 ELSE 2 END
			& coalesce((SELECT b.bands FROM outbox_band b WHERE b.target = o.target AND b.version = o.version
				AND b.above < m.seq ORDER BY b.above DESC LIMIT 1), 7))
UNION ALL
SELECT m.seq, m.id, p.target, m.type, m.key, p.lane, 'pending',
	CASE WHEN t.paused THEN 'paused' ELSE 'new' END,
	0, NULL, NULL, NULL, m.event_time, m.created_at, NULL, NULL
FROM outbox_target t
CROSS JOIN outbox_position p ON p.target = t.name
CROSS JOIN outbox_log m ON m.seq > p.claim_end
	AND p.lane = m.slot % (SELECT value FROM outbox_meta WHERE name = 'lanes')
WHERE NOT EXISTS (SELECT 1 FROM outbox_detour d WHERE d.target = p.target AND d.seq = m.seq)
	AND EXISTS (SELECT 1 FROM outbox_route o
		WHERE o.target = p.target AND o.version = t.version AND m.type GLOB o.type_glob
		AND coalesce(m.kind, 'event') = coalesce(o.kind, m.kind, 'event')
		AND coalesce(m.published, 0) >= o.published_only
		AND CASE WHEN m.priority > 0 THEN 1 WHEN m.priority < 0 THEN 4 ELSE 2 END
			& coalesce((SELECT b.bands FROM outbox_band b WHERE b.target = o.target AND b.version = o.version
				AND b.above < m.seq ORDER BY b.above DESC LIMIT 1), 7));
