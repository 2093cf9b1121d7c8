-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite: from schema version 4 to version 5. Only additions: a program that knows version 1 goes
-- on working with the result (min_reader 1). It holds people's data, so this file never changes again.

-- ---- routes by headers ------------------------------------------------------------------------------------

-- What a version of a target's routing wants of headers: for each name, a value that fits one of its globs. A program
-- that does not know this table takes a message for wanted that is not, and so it keeps it; it claims none of them, as
-- only who knows headers can have registered this version.
CREATE TABLE outbox_route_header (
	target TEXT NOT NULL,
	version INTEGER NOT NULL,
	name TEXT NOT NULL COLLATE NOCASE,
	glob TEXT NOT NULL,
	PRIMARY KEY (target, version, name, glob)
) WITHOUT ROWID;
