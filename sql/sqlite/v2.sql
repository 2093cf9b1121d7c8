-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite: from schema version 1 to version 2. Only additions: a program that knows version 1 goes
-- on working with the result (min_reader 1). It holds people's data, so this file never changes again.

-- ---- dead letters -----------------------------------------------------------------------------------------

ALTER TABLE outbox_target ADD COLUMN dead_letter TEXT; -- the target that gets what fails here

-- It failed at another target, which has this one for its dead letter: where, why, after how many failed
-- tries, when; and which claim of this lane was in flight then (a receipt's n), if one was.
ALTER TABLE outbox_detour ADD COLUMN dead_target TEXT;
ALTER TABLE outbox_detour ADD COLUMN dead_reason TEXT;
ALTER TABLE outbox_detour ADD COLUMN dead_attempts INTEGER;
ALTER TABLE outbox_detour ADD COLUMN dead_at INTEGER;
ALTER TABLE outbox_detour ADD COLUMN dead_n INTEGER;

-- ---- counting ---------------------------------------------------------------------------------------------

-- Counts stop at a cap; with this they are short also where a million are parked.
CREATE INDEX outbox_detour_why ON outbox_detour (target, why) WHERE state = 'pending';

-- ---- bands of priority (above 0 high, 0 or NULL normal, below 0 low) -------------------------------------

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
