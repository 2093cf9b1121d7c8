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
