-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite: from schema version 1 to version 2. Only additions: a program that knows version 1 goes
-- on working with the result (min_reader 1).

-- ---- dead letters -----------------------------------------------------------------------------------------

ALTER TABLE outbox_target ADD COLUMN dead_letter TEXT; -- the target that gets what fails here

-- It failed at another target, which has this one for its dead letter: where, why, after how many failed
-- tries, when; and which claim of this lane was in flight then (a receipt's n), if one was.
ALTER TABLE outbox_detour ADD COLUMN dead_target TEXT;
ALTER TABLE outbox_detour ADD COLUMN dead_reason TEXT;
ALTER TABLE outbox_detour ADD COLUMN dead_attempts INTEGER;
ALTER TABLE outbox_detour ADD COLUMN dead_at INTEGER;
ALTER TABLE outbox_detour ADD COLUMN dead_n INTEGER;

-- What fails becomes pending for the dead letter in the same transaction, whichever program it is that settles.
-- What is in flight there at this moment is sent once more when that is settled: dead_n is the claim it is in.
CREATE TRIGGER outbox_detour_failed AFTER INSERT ON outbox_detour
WHEN NEW.state = 'failed'
BEGIN
	INSERT INTO outbox_detour (target, seq, id, key, lane, state, why, next_attempt_at, last_status_at,
		dead_target, dead_reason, dead_attempts, dead_at, dead_n)
	SELECT t.name, NEW.seq, NEW.id, NEW.key, NEW.lane, 'pending', 'retry', NEW.last_status_at, NEW.last_status_at,
		NEW.target, NEW.last_error, NEW.attempts, NEW.last_status_at,
		(SELECT CASE WHEN r.claim_count > 0 THEN r.n END FROM outbox_receipt r
			WHERE r.target = t.name AND r.lane = NEW.lane ORDER BY r.n DESC LIMIT 1)
	FROM outbox_target t WHERE t.name = (SELECT dead_letter FROM outbox_target WHERE name = NEW.target)
	ON CONFLICT (target, seq) DO UPDATE SET
		dead_target = excluded.dead_target, dead_reason = excluded.dead_reason,
		dead_attempts = excluded.dead_attempts, dead_at = excluded.dead_at,
		dead_n = CASE state WHEN 'pending' THEN dead_n WHEN 'sending' THEN excluded.dead_n END,
		state = CASE WHEN state = 'sending' THEN state ELSE 'pending' END,
		why = CASE WHEN state IN ('pending', 'sending') THEN why ELSE 'retry' END,
		next_attempt_at = CASE WHEN state IN ('pending', 'sending') THEN next_attempt_at
			ELSE excluded.next_attempt_at END,
		attempts = CASE WHEN state IN ('pending', 'sending') THEN attempts ELSE 0 END,
		failing_since = CASE WHEN state IN ('pending', 'sending') THEN failing_since END,
		last_error = CASE WHEN state IN ('pending', 'sending') THEN last_error END,
		last_status_at = excluded.last_status_at, reason = NULL,
		n = CASE WHEN state IN ('pending', 'sending') THEN n END;
END;

CREATE TRIGGER outbox_detour_fails AFTER UPDATE OF state ON outbox_detour
WHEN NEW.state = 'failed' AND OLD.state <> 'failed'
BEGIN
	INSERT INTO outbox_detour (target, seq, id, key, lane, state, why, next_attempt_at, last_status_at,
		dead_target, dead_reason, dead_attempts, dead_at, dead_n)
	SELECT t.name, NEW.seq, NEW.id, NEW.key, NEW.lane, 'pending', 'retry', NEW.last_status_at, NEW.last_status_at,
		NEW.target, NEW.last_error, NEW.attempts, NEW.last_status_at,
		(SELECT CASE WHEN r.claim_count > 0 THEN r.n END FROM outbox_receipt r
			WHERE r.target = t.name AND r.lane = NEW.lane ORDER BY r.n DESC LIMIT 1)
	FROM outbox_target t WHERE t.name = (SELECT dead_letter FROM outbox_target WHERE name = NEW.target)
	ON CONFLICT (target, seq) DO UPDATE SET
		dead_target = excluded.dead_target, dead_reason = excluded.dead_reason,
		dead_attempts = excluded.dead_attempts, dead_at = excluded.dead_at,
		dead_n = CASE state WHEN 'pending' THEN dead_n WHEN 'sending' THEN excluded.dead_n END,
		state = CASE WHEN state = 'sending' THEN state ELSE 'pending' END,
		why = CASE WHEN state IN ('pending', 'sending') THEN why ELSE 'retry' END,
		next_attempt_at = CASE WHEN state IN ('pending', 'sending') THEN next_attempt_at
			ELSE excluded.next_attempt_at END,
		attempts = CASE WHEN state IN ('pending', 'sending') THEN attempts ELSE 0 END,
		failing_since = CASE WHEN state IN ('pending', 'sending') THEN failing_since END,
		last_error = CASE WHEN state IN ('pending', 'sending') THEN last_error END,
		last_status_at = excluded.last_status_at, reason = NULL,
		n = CASE WHEN state IN ('pending', 'sending') THEN n END;
END;

-- It arrived while it was in flight, and that is delivered now: once more.
CREATE TRIGGER outbox_detour_again AFTER UPDATE OF state ON outbox_detour
WHEN NEW.state = 'delivered' AND OLD.state = 'sending' AND NEW.dead_n = NEW.n - 1
BEGIN
	UPDATE outbox_detour SET state = 'pending', why = 'retry', attempts = 0, next_attempt_at = NEW.last_status_at
	WHERE target = NEW.target AND seq = NEW.seq;
END;

-- ---- redaction --------------------------------------------------------------------------------------------

-- One kind of change is let through: 'redact' in outbox_meta, there only inside the transaction that does it,
-- names the message, and what becomes of it is a tombstone.
DROP TRIGGER outbox_message_immutable;
CREATE TRIGGER outbox_message_immutable BEFORE UPDATE ON outbox_message
WHEN OLD.id IS NOT NULL AND OLD.created_at IS NOT NULL AND OLD.event_time IS NOT NULL
	AND NOT (EXISTS (SELECT 1 FROM outbox_meta WHERE name = 'redact' AND value = OLD.seq)
		AND NEW.payload IS '{"redacted":true}' AND NEW.headers IS NULL AND NEW.subject IS NULL
		AND NEW.seq = OLD.seq AND NEW.id = OLD.id AND NEW.type = OLD.type
		AND NEW.created_at = OLD.created_at AND NEW.event_time = OLD.event_time
		AND (NEW.key IS NULL) = (OLD.key IS NULL))
BEGIN
	SELECT RAISE(ABORT, 'outbox_message is a log: a message never changes after its insert; publish a new one');
END;

-- ---- counting ---------------------------------------------------------------------------------------------

-- Counts stop at a cap; with this they are short also where a million are parked.
CREATE INDEX outbox_detour_why ON outbox_detour (target, why) WHERE state = 'pending';
