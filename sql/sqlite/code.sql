-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite: the current triggers and views. They hold no data: `outbox init` creates them after the
-- tables, `outbox upgrade` drops those that are there and creates these. src/store/sqlite/reset.c has their names.

-- ---- the log is a log -------------------------------------------------------------------------------------

-- ORMs write NULL for what they do not set: NULL means the default. A seq below the log's end would never be read, and
-- after one near the largest possible number there could be no more. (sqlite_sequence has the value before this
-- statement, of which this need not be the first row.) An empty key is a key, whose messages would wait for each other,
-- and a due time in seconds or milliseconds would be in 1970. One trigger for all of this is cheaper than several.
CREATE TRIGGER outbox_message_insert AFTER INSERT ON outbox_message
WHEN NEW.id IS NULL OR NEW.created_at IS NULL OR NEW.event_time IS NULL
	OR NEW.seq NOT BETWEEN 1 AND 4611686018427387904
	OR NEW.seq <= (SELECT seq FROM sqlite_sequence WHERE name = 'outbox_message')
	OR NEW.key = '' OR NEW.due_at BETWEEN 1 AND 99999999999999 OR length(CAST(NEW.headers AS BLOB)) > 262144
BEGIN
	SELECT RAISE(ABORT, 'outbox_message: headers is at most 256 KiB') WHERE length(CAST(NEW.headers AS BLOB)) > 262144;
	SELECT RAISE(ABORT, 'outbox_message: key is empty; leave it NULL') WHERE NEW.key = '';
	SELECT RAISE(ABORT, 'outbox_message: due_at is in microseconds since 1970; this is in seconds or milliseconds')
	WHERE NEW.due_at BETWEEN 1 AND 99999999999999;
	SELECT RAISE(ABORT, 'outbox_message: seq is given by the log; leave it out of the INSERT')
	WHERE NEW.seq NOT BETWEEN 1 AND 4611686018427387904
		OR NEW.seq <= (SELECT seq FROM sqlite_sequence WHERE name = 'outbox_message');
	UPDATE outbox_message SET
		id = coalesce(id, lower(printf('%08x-%04x-7%s-%s%s-%s',
			CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) >> 16,
			CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) & 65535,
			substr(hex(randomblob(2)), 2),
			substr('89ab', 1 + (random() & 3), 1), substr(hex(randomblob(2)), 2),
			hex(randomblob(6))))),
		created_at = coalesce(created_at,
			CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000),
		event_time = coalesce(event_time, created_at,
			CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)
	WHERE seq = NEW.seq;
END;

-- REPLACE deletes the row that is in its way, and fires no DELETE trigger unless the connection has recursive_triggers on.
-- But the conflict clause of a statement holds for its triggers, too: only under REPLACE does the INSERT below, of a row that
-- is always there, change it. What it has changed is undone with the rest.
CREATE TRIGGER outbox_message_replace BEFORE INSERT ON outbox_message
WHEN EXISTS (SELECT 1 FROM outbox_message WHERE id = NEW.id)
BEGIN
	INSERT OR IGNORE INTO outbox_meta (name, value) VALUES ('schema', 'replaced');
	SELECT RAISE(ABORT, 'outbox_message is a log: REPLACE would remove the message with this id; use ON CONFLICT (id) DO NOTHING')
	FROM outbox_meta WHERE name = 'schema' AND value = 'replaced';
END;

-- Two kinds of change are allowed: 'redact' or 'amend' in outbox_meta, which is there only inside the transaction that
-- makes the change, names the message. The message is redacted, or gets another payload while the old one is kept.
CREATE TRIGGER outbox_message_immutable BEFORE UPDATE ON outbox_message
WHEN OLD.id IS NOT NULL AND OLD.created_at IS NOT NULL AND OLD.event_time IS NOT NULL
	AND NOT (EXISTS (SELECT 1 FROM outbox_meta WHERE name = 'redact' AND value = OLD.seq)
		AND NEW.payload IS '{"redacted":true}' AND NEW.headers IS NULL AND NEW.subject IS NULL
		AND NEW.seq = OLD.seq AND NEW.id = OLD.id AND NEW.type = OLD.type
		AND NEW.created_at = OLD.created_at AND NEW.event_time = OLD.event_time
		AND (NEW.key IS NULL) = (OLD.key IS NULL))
	AND NOT (EXISTS (SELECT 1 FROM outbox_meta WHERE name = 'amend' AND value = OLD.seq)
		AND EXISTS (SELECT 1 FROM outbox_amended a WHERE a.seq = OLD.seq AND a.payload IS OLD.payload
			AND a.payload_bin IS OLD.payload_bin AND a.headers IS OLD.headers AND a.content_type IS OLD.content_type)
		AND NEW.seq = OLD.seq AND NEW.id = OLD.id AND NEW.type = OLD.type AND NEW.key IS OLD.key
		AND NEW.kind IS OLD.kind AND NEW.published IS OLD.published AND NEW.priority IS OLD.priority
		AND NEW.created_at = OLD.created_at AND NEW.event_time = OLD.event_time
		AND NEW.due_at IS OLD.due_at AND NEW.expires_at IS OLD.expires_at AND NEW.source IS OLD.source
		AND NEW.subject IS OLD.subject AND NEW.topic IS OLD.topic AND NEW.correlation_id IS OLD.correlation_id
		AND NEW.causation_id IS OLD.causation_id AND NEW.traceparent IS OLD.traceparent)
BEGIN
	SELECT RAISE(ABORT, 'outbox_message is a log: a message never changes after its insert; publish a new one');
END;

CREATE TRIGGER outbox_message_keep BEFORE DELETE ON outbox_message
WHEN NOT EXISTS (SELECT 1 FROM outbox_meta WHERE name = 'janitor')
BEGIN
	SELECT RAISE(ABORT, 'outbox_message is a log: messages are removed by retention; use outbox purge, or outbox discard to stop a delivery');
END;

-- ---- the history of failed attempts -----------------------------------------------------------------------

-- It goes with the delivery, and its texts with a redaction, whichever program does it.
CREATE TRIGGER outbox_detour_forget AFTER DELETE ON outbox_detour
BEGIN
	DELETE FROM outbox_attempt WHERE target = OLD.target AND seq = OLD.seq;
END;

-- That a message was cancelled is forgotten with it.
CREATE TRIGGER outbox_message_forget AFTER DELETE ON outbox_message
BEGIN
	DELETE FROM outbox_cancelled WHERE seq = OLD.seq;
END;

CREATE TRIGGER outbox_message_redacted AFTER UPDATE OF payload ON outbox_message
WHEN NEW.payload IS '{"redacted":true}' AND EXISTS (SELECT 1 FROM outbox_meta WHERE name = 'redact' AND value = NEW.seq)
BEGIN
	UPDATE outbox_attempt SET reason = NULL, answer = NULL
	WHERE target IN (SELECT name FROM outbox_target) AND seq = NEW.seq;
END;

-- ---- dead letters -----------------------------------------------------------------------------------------

-- An INSERT here is a delivery that fails. The two triggers below share what follows from that.
CREATE VIEW outbox_dead_letter AS
SELECT target, seq, id, key, lane, last_error, attempts, last_status_at FROM outbox_detour WHERE state = 'failed';

-- What fails becomes pending for the dead letter target in the same transaction, whichever program settles it.
-- What is in flight there at that moment is sent again when that is settled: dead_n is the claim that it is in.
CREATE TRIGGER outbox_dead_letter_insert INSTEAD OF INSERT ON outbox_dead_letter
BEGIN
	INSERT INTO outbox_detour (target, seq, id, key, lane, state, why, next_attempt_at, last_status_at,
		dead_target, dead_reason, dead_attempts, dead_at, dead_n, ready_at)
	SELECT t.name, NEW.seq, NEW.id, NEW.key, NEW.lane, 'pending', 'retry', NEW.last_status_at, NEW.last_status_at,
		NEW.target, NEW.last_error, NEW.attempts, NEW.last_status_at,
		(SELECT CASE WHEN r.claim_count > 0 THEN r.n END FROM outbox_receipt r
			WHERE r.target = t.name AND r.lane = NEW.lane ORDER BY r.n DESC LIMIT 1), NEW.last_status_at
	FROM outbox_target t WHERE t.name = (SELECT dead_letter FROM outbox_target WHERE name = NEW.target)
	ON CONFLICT (target, seq) DO UPDATE SET
		dead_target = excluded.dead_target, dead_reason = excluded.dead_reason,
		dead_attempts = excluded.dead_attempts, dead_at = excluded.dead_at,
		dead_n = CASE state WHEN 'pending' THEN dead_n WHEN 'sending' THEN excluded.dead_n END,
		state = CASE WHEN state = 'sending' THEN state ELSE 'pending' END,
		why = CASE WHEN state IN ('pending', 'sending') THEN why ELSE 'retry' END,
		next_attempt_at = CASE WHEN state IN ('pending', 'sending') THEN next_attempt_at
			ELSE excluded.next_attempt_at END,
		ready_at = CASE WHEN state IN ('pending', 'sending') THEN ready_at ELSE excluded.ready_at END,
		attempts = CASE WHEN state IN ('pending', 'sending') THEN attempts ELSE 0 END,
		failing_since = CASE WHEN state IN ('pending', 'sending') THEN failing_since END,
		last_error = CASE WHEN state IN ('pending', 'sending') THEN last_error END,
		last_status_at = excluded.last_status_at, reason = NULL,
		n = CASE WHEN state IN ('pending', 'sending') THEN n END;
END;

CREATE TRIGGER outbox_detour_failed AFTER INSERT ON outbox_detour
WHEN NEW.state = 'failed'
BEGIN
	INSERT INTO outbox_dead_letter VALUES (NEW.target, NEW.seq, NEW.id, NEW.key, NEW.lane, NEW.last_error,
		NEW.attempts, NEW.last_status_at);
END;

CREATE TRIGGER outbox_detour_fails AFTER UPDATE OF state ON outbox_detour
WHEN NEW.state = 'failed' AND OLD.state <> 'failed'
BEGIN
	INSERT INTO outbox_dead_letter VALUES (NEW.target, NEW.seq, NEW.id, NEW.key, NEW.lane, NEW.last_error,
		NEW.attempts, NEW.last_status_at);
END;

-- A dead letter that arrived while the message was in flight here: now that this is delivered, send it again.
CREATE TRIGGER outbox_detour_again AFTER UPDATE OF state ON outbox_detour
WHEN NEW.state = 'delivered' AND OLD.state = 'sending' AND NEW.dead_n = NEW.n - 1
BEGIN
	UPDATE outbox_detour SET state = 'pending', why = 'retry', attempts = 0, next_attempt_at = NEW.last_status_at, ready_at = dead_at
	WHERE target = NEW.target AND seq = NEW.seq;
END;

-- ---- what people see --------------------------------------------------------------------------------------

-- The log with each message's slot: the same number on every store, see src/core/key_hash.h; the lane of a
-- message is slot % lanes. This is a view because a generated column would make every INSERT twice as slow.
CREATE VIEW outbox_log AS
SELECT m.seq, m.id, m.type, m.key, m.kind, m.published, m.priority, m.created_at, m.event_time, m.due_at, m.expires_at,
	m.content_type, m.source, m.subject, m.topic, m.correlation_id, m.causation_id, m.traceparent, m.headers, m.payload,
	m.payload_bin, (SELECT (7 * length(h) / 2
		+ 3 * (16 * instr('0123456789ABCDEF', substr(h, -2, 1)) + instr('0123456789ABCDEF', substr(h, -1, 1)) - 17)
		+ 5 * (16 * instr('0123456789ABCDEF', substr(h, -4, 1)) + instr('0123456789ABCDEF', substr(h, -3, 1)) - 17)
		+ 7 * (16 * instr('0123456789ABCDEF', substr(h, -6, 1)) + instr('0123456789ABCDEF', substr(h, -5, 1)) - 17)
		+ 9 * (16 * instr('0123456789ABCDEF', substr(h, -8, 1)) + instr('0123456789ABCDEF', substr(h, -7, 1)) - 17)
		+ 11 * (16 * instr('0123456789ABCDEF', substr(h, -10, 1)) + instr('0123456789ABCDEF', substr(h, -9, 1)) - 17)
		+ 13 * (16 * instr('0123456789ABCDEF', substr(h, -12, 1)) + instr('0123456789ABCDEF', substr(h, -11, 1)) - 17)
		+ 15 * (16 * instr('0123456789ABCDEF', substr(h, -14, 1)) + instr('0123456789ABCDEF', substr(h, -13, 1)) - 17)
		+ 17 * (16 * instr('0123456789ABCDEF', substr(h, -16, 1)) + instr('0123456789ABCDEF', substr(h, -15, 1)) - 17)
		+ 19 * (16 * instr('0123456789ABCDEF', substr(h, -18, 1)) + instr('0123456789ABCDEF', substr(h, -17, 1)) - 17)
		+ 21 * (16 * instr('0123456789ABCDEF', substr(h, -20, 1)) + instr('0123456789ABCDEF', substr(h, -19, 1)) - 17)
		+ 23 * (16 * instr('0123456789ABCDEF', substr(h, -22, 1)) + instr('0123456789ABCDEF', substr(h, -21, 1)) - 17)
		+ 25 * (16 * instr('0123456789ABCDEF', substr(h, -24, 1)) + instr('0123456789ABCDEF', substr(h, -23, 1)) - 17)
		+ 30 * (16 * instr('0123456789ABCDEF', substr(h, 1, 1)) + instr('0123456789ABCDEF', substr(h, 2, 1)) - 17)
		+ 38 * (16 * instr('0123456789ABCDEF', substr(h, 3, 1)) + instr('0123456789ABCDEF', substr(h, 4, 1)) - 17)
		+ 46 * (16 * instr('0123456789ABCDEF', substr(h, 5, 1)) + instr('0123456789ABCDEF', substr(h, 6, 1)) - 17)
		+ 54 * (16 * instr('0123456789ABCDEF', substr(h, 7, 1)) + instr('0123456789ABCDEF', substr(h, 8, 1)) - 17)
	) % 4096 FROM (SELECT hex(coalesce(m.key, m.id)) AS h)) AS slot
FROM outbox_message m;

-- The last receipt of every lane.
CREATE VIEW outbox_position AS
SELECT l.target, l.lane, l.owner AS lease_owner, l.lease_until, l.takeovers AS takeovers_ever,
	r.n, r.owner, r.settled_at, r.route_version, r.pos, r.claim_end, r.claim_count,
	r.delivered_total
FROM outbox_lane l
CROSS JOIN outbox_receipt r ON r.target = l.target AND r.lane = l.lane
	AND r.n = (SELECT max(n) FROM outbox_receipt WHERE target = l.target AND lane = l.lane);

-- Every message x every target it is routed to: those with a row of their own, and those of the log, whose state
-- follows from their lane's position. WHERE state = 'failed' reads only detours. SQLite moves the conditions that the
-- four parts about the log share into each of them as long as their columns have the same types: hence the CASTs.
CREATE VIEW outbox_delivery AS
SELECT d.seq, d.id, d.target, m.type, d.key, d.lane, d.state,
	CASE WHEN d.state = 'pending' THEN d.why END AS why,
	d.attempts, d.owner, d.last_error, d.reason, m.event_time, m.created_at, d.last_status_at,
	d.next_attempt_at
FROM outbox_detour d LEFT JOIN outbox_message m ON m.seq = d.seq
UNION ALL
SELECT m.seq, m.id, m.target, m.type, m.key, m.lane, m.state, m.why,
	0, m.owner, NULL, NULL, m.event_time, m.created_at, m.last_status_at, NULL
FROM (
	SELECT m.seq, m.id, m.type, m.key, m.kind, m.published, m.priority, m.event_time, m.created_at, m.slot,
		p.target, p.lane, 'delivered' AS state, NULL AS why, r.owner, r.settled_at AS last_status_at,
		r.route_version AS version
	FROM outbox_target t
	CROSS JOIN outbox_log m ON m.seq > t.start_seq
	CROSS JOIN outbox_position p ON p.target = t.name AND m.seq <= p.pos
	CROSS JOIN outbox_receipt r ON r.number = (
		SELECT c.number FROM outbox_receipt c
		WHERE c.target = p.target AND c.lane = p.lane AND c.pos >= m.seq ORDER BY c.pos, c.n LIMIT 1)
		AND r.from_seq < m.seq
	WHERE NOT (m.seq > (SELECT value FROM outbox_meta WHERE name = 'gone_after')
		AND m.seq <= (SELECT value FROM outbox_meta WHERE name = 'gone_to'))
	UNION ALL
	SELECT m.seq, m.id, m.type, m.key, m.kind, m.published, m.priority, m.event_time, m.created_at, m.slot,
		p.target, p.lane, 'sending', NULL, p.owner, p.settled_at, p.route_version
	FROM outbox_position p
	CROSS JOIN outbox_log m ON m.seq > p.pos AND m.seq <= p.claim_end
	UNION ALL
	SELECT m.seq, m.id, m.type, m.key, m.kind, m.published, m.priority, m.event_time, m.created_at, m.slot,
		p.target, p.lane, 'pending',
		CASE WHEN m.due_at > CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000 THEN 'deferred'
			WHEN t.paused THEN 'paused' ELSE 'new' END,
		CAST(NULL AS TEXT), CAST(NULL AS INTEGER), t.version
	FROM outbox_target t
	CROSS JOIN outbox_position p ON p.target = t.name
	CROSS JOIN outbox_log m ON m.seq > p.claim_end
	UNION ALL -- a new message under an old number: see gone_after in v3.sql
	SELECT m.seq, m.id, m.type, m.key, m.kind, m.published, m.priority, m.event_time, m.created_at, m.slot,
		p.target, p.lane, 'pending', CASE WHEN t.paused THEN 'paused' ELSE 'new' END,
		CAST(NULL AS TEXT), CAST(NULL AS INTEGER), t.version
	FROM outbox_target t
	CROSS JOIN outbox_position p ON p.target = t.name
	CROSS JOIN outbox_log m ON m.seq > (SELECT value FROM outbox_meta WHERE name = 'gone_after')
		AND m.seq <= (SELECT value FROM outbox_meta WHERE name = 'gone_to') AND m.seq <= p.claim_end
) m
WHERE NOT EXISTS (SELECT 1 FROM outbox_detour d WHERE d.target = m.target AND d.seq = m.seq)
	AND EXISTS (SELECT 1 FROM outbox_route o
		WHERE o.target = m.target AND o.version = m.version AND m.type GLOB o.type_glob
		AND coalesce(m.kind, 'event') = coalesce(o.kind, m.kind, 'event')
		AND coalesce(m.published, 0) >= o.published_only
		AND CASE WHEN m.priority > 0 THEN 1 WHEN m.priority < 0 THEN 4 ELSE 2 END
			& coalesce((SELECT b.bands FROM outbox_band b WHERE b.target = o.target AND b.version = o.version
				AND b.above < m.seq ORDER BY b.above DESC LIMIT 1), 7))
	AND NOT EXISTS (SELECT 1 FROM outbox_route_header w
		WHERE w.target = m.target AND w.version = m.version AND NOT EXISTS (
			SELECT 1 FROM outbox_message x, json_each(CASE WHEN json_valid(x.headers) THEN x.headers END) h
			JOIN outbox_route_header g ON g.target = w.target AND g.version = w.version AND g.name = w.name
			WHERE x.seq = m.seq AND h.key = g.name COLLATE NOCASE AND h.value GLOB g.glob))
	AND m.lane = m.slot % (SELECT value FROM outbox_meta WHERE name = 'lanes');

CREATE VIEW outbox_failed AS
SELECT d.seq, d.id, d.target, m.type, d.key, d.lane, d.attempts, d.owner, d.last_error,
	m.event_time, m.created_at, d.last_status_at AS failed_at
FROM outbox_target t
CROSS JOIN outbox_detour d ON d.target = t.name AND d.state = 'failed'
LEFT JOIN outbox_message m ON m.seq = d.seq;

-- Per target, what is left to do. Counts stop at 100,001, which means "more than 100,000".
CREATE VIEW outbox_backlog AS
SELECT t.name AS target, t.paused,
	(SELECT count(*) FROM (SELECT 1 FROM outbox_delivery v
		WHERE v.target = t.name AND v.state = 'pending' AND v.why IN ('new', 'paused', 'deferred')
			AND v.last_status_at IS NULL -- which detours have: they are counted below
		LIMIT 100001)) AS pending,
	(SELECT coalesce(sum(p.claim_count), 0) FROM outbox_position p WHERE p.target = t.name) AS sending,
	(SELECT count(*) FROM (SELECT 1 FROM outbox_detour d
		WHERE d.target = t.name AND d.state = 'pending' AND d.why = 'retry' LIMIT 100001)) AS waiting,
	(SELECT count(*) FROM (SELECT 1 FROM outbox_detour d
		WHERE d.target = t.name AND d.state = 'pending' AND d.why = 'deferred' LIMIT 100001)) AS deferred,
	(SELECT count(*) FROM (SELECT 1 FROM outbox_detour d
		WHERE d.target = t.name AND d.state = 'pending' AND d.why = 'parked' LIMIT 100001)) AS parked,
	(SELECT count(*) FROM (SELECT 1 FROM outbox_detour d
		WHERE d.target = t.name AND d.state = 'failed' LIMIT 100001)) AS failed,
	(SELECT coalesce(sum(p.delivered_total), 0) FROM outbox_position p WHERE p.target = t.name) AS delivered
FROM outbox_target t;
