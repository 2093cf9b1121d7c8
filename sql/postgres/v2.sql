-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: from schema version 1 to version 2, the tables. Only additions: a program that knows
-- version 1 goes on working with the result (min_reader 1). Functions that are here again replace those of
-- version 1; a function with more parameters stands beside the old one, which calls it.

-- A table that somebody uses is not worth a queue of everybody else behind us: try again.
SET LOCAL lock_timeout = '5s';

-- ---- dead letters -----------------------------------------------------------------------------------------

ALTER TABLE outbox_target ADD COLUMN dead_letter text; -- the target that gets what fails here

-- It failed at another target, which has this one for its dead letter: where, why, after how many failed
-- tries, when; and which claim of this lane was in flight then (a receipt's n), if one was.
ALTER TABLE outbox_detour ADD COLUMN dead_target text, ADD COLUMN dead_reason text,
	ADD COLUMN dead_attempts integer, ADD COLUMN dead_at timestamptz, ADD COLUMN dead_n bigint;
