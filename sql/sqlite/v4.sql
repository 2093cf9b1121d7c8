-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite: from schema version 3 to version 4. Only additions: a program that knows version 1 goes
-- on working with the result (min_reader 1). It holds people's data, so this file never changes again.

-- ---- the history of failed attempts -----------------------------------------------------------------------

-- A try to deliver that failed. It goes with its detour.
CREATE TABLE outbox_attempt (
	target TEXT NOT NULL,
	seq INTEGER NOT NULL,
	n INTEGER NOT NULL,       -- the receipt that settled it
	at INTEGER NOT NULL,
	attempt INTEGER NOT NULL, -- which one it was, from 1 on
	verdict TEXT NOT NULL,    -- rejected, retry or unknown
	native INTEGER NOT NULL,  -- the broker's code; 0: it gave none
	reason TEXT,              -- NULL: redacted
	answer TEXT,              -- what the broker said in full, up to 4 KiB; NULL: the reason is all
	PRIMARY KEY (target, seq, n)
);

-- ---- cancelled messages -----------------------------------------------------------------------------------

-- Scheduled messages that were cancelled before they were due: a target that is registered later does not send them
-- either. A row goes with its message.
CREATE TABLE outbox_cancelled (
	seq INTEGER PRIMARY KEY,
	id TEXT NOT NULL,
	at INTEGER NOT NULL,
	actor TEXT,
	reason TEXT NOT NULL
);
