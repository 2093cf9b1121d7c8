-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: from schema version 5 to version 6. A program that knows version 1 goes on working with the
-- result (min_reader 1). Like every version it never changes; functions and views are in files of their own, which do.

-- ---- routes by headers ------------------------------------------------------------------------------------

-- LIKE patterns of name=value: see headers.sql. NULL: whatever the headers are.
ALTER TABLE outbox_route ADD COLUMN headers text[];
ALTER TYPE outbox_view ADD ATTRIBUTE headers text[];

-- It says what the routing wants of headers, too; a function's results cannot be replaced.
DROP FUNCTION IF EXISTS outbox_straight_lane(text, integer, bigint, bigint, bigint, integer, bigint, bigint, pg_snapshot, bigint);
