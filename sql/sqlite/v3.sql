-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite: from schema version 2 to version 3. Only additions: a program that knows version 1 goes
-- on working with the result (min_reader 1). It holds people's data, so this file never changes again.

-- ---- ages --------------------------------------------------------------------------------------------------

-- Since when it can be sent, where that is not since its message's commit: the time at which it was due, was deferred to,
-- was requeued or arrived as a dead letter. A retry does not change it.
ALTER TABLE outbox_detour ADD COLUMN ready_at INTEGER;
CREATE INDEX outbox_detour_ready ON outbox_detour (target, ready_at, seq) WHERE state IN ('pending', 'sending');
ALTER TABLE outbox_target ADD COLUMN resumed_at INTEGER; -- when its last pause ended; NULL: it never was paused
