-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite: from schema version 2 to version 3. Only additions: a program that knows version 1 goes
-- on working with the result (min_reader 1). It holds people's data, so this file never changes again.

-- ---- workers ----------------------------------------------------------------------------------------------

ALTER TABLE outbox_worker ADD COLUMN place TEXT; -- where it sends to, without secrets; NULL: not known

-- Relays that are configured for a target and do not serve it, and why: for people. Apart from outbox_worker,
-- which counts those who share the lanes.
CREATE TABLE outbox_unserved (
	target TEXT NOT NULL, -- need not be registered
	owner TEXT NOT NULL,
	alive_until INTEGER NOT NULL,
	since INTEGER NOT NULL,
	why TEXT NOT NULL,
	PRIMARY KEY (target, owner)
) WITHOUT ROWID;

-- ---- ages --------------------------------------------------------------------------------------------------

-- Since when it can be sent, where that is not since its message's commit: the time at which it was due, was deferred to,
-- was requeued or arrived as a dead letter. A retry does not change it.
ALTER TABLE outbox_detour ADD COLUMN ready_at INTEGER;
CREATE INDEX outbox_detour_ready ON outbox_detour (target, ready_at, seq) WHERE state IN ('pending', 'sending');
ALTER TABLE outbox_target ADD COLUMN resumed_at INTEGER; -- when its last pause ended; NULL: it never was paused

-- ---- positions of another history -------------------------------------------------------------------------

ALTER TABLE outbox_lane ADD COLUMN refused TEXT;       -- why relays refuse this lane; NULL: they do not
ALTER TABLE outbox_lane ADD COLUMN refused_at INTEGER;

-- Numbers behind gone_after, up to gone_to, are gone for good: a message that has one is a new one. See
-- src/store/sqlite/numbers.h.
INSERT INTO outbox_meta (name, value) SELECT 'gone_after', coalesce(max(seq), 0) FROM outbox_message;
INSERT INTO outbox_meta (name, value)
VALUES ('gone_to', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outbox_message'), 0));

-- ---- corrections ------------------------------------------------------------------------------------------

-- What a message was before it was amended, the n-th time. It goes with its message, and with a redaction.
CREATE TABLE outbox_amended (
	seq INTEGER NOT NULL,
	n INTEGER NOT NULL,
	at INTEGER NOT NULL,
	actor TEXT,
	reason TEXT,
	content_type TEXT,
	headers TEXT,
	payload TEXT,
	payload_bin BLOB,
	PRIMARY KEY (seq, n)
) WITHOUT ROWID;
