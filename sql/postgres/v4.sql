-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: from schema version 3 to version 4. A program that knows version 1 goes on working with the
-- result (min_reader 1). Like every version it never changes; functions and views are in files of their own, which do.

-- ---- bands -------------------------------------------------------------------------------------------------

-- Pairs, a place in the log and which bands are taken behind it, up to the next place: see bands.sql. NULL: every one.
ALTER TABLE outbox_route ADD COLUMN bands bigint[];
ALTER TYPE outbox_view ADD ATTRIBUTE bands bigint[];

-- They were a part of kind: 'event {0,7,1200,2}', or '* {...}' for both kinds.
UPDATE outbox_route SET kind = nullif(split_part(kind, ' ', 1), '*'), bands = split_part(kind, ' ', 2)::bigint[]
	WHERE kind LIKE '% %';

-- A target that is registered, or changed.
CREATE TYPE outbox_registration AS (
	target text,
	route text,             -- the routing as a program writes it, whole
	globs text[],
	kind text,
	published_only boolean,
	priorities integer,     -- which bands it wants: 1 high + 2 normal + 4 low; 8 none
	family text,            -- the target whose bands they are; NULL: none's
	bands bigint[],         -- what comes of that, as in outbox_route
	hold boolean,
	unordered boolean,
	start integer,          -- 0 not given, 1 at the oldest message, 2 now, 3 at start_at
	start_at timestamptz,
	dead_letter text,
	token bigint,           -- of its lanes' first receipts
	now timestamptz         -- NULL: the server's time
);

-- ---- positions of another history --------------------------------------------------------------------------

-- What is wrong with a lane.
CREATE TYPE outbox_fault AS (
	kind text,   -- log end, transaction, server, reuse: see lane.sql; sequence: see rebase.sql; lanes
	what text,   -- for people
	remedy text  -- for people; NULL: outbox realign
);

-- refused has what, without the remedy, and this the kind.
ALTER TABLE outbox_lane ADD COLUMN refused_kind text;

-- There was only the text.
UPDATE outbox_lane SET refused = split_part(refused, '; run: outbox ', 1),
	refused_kind = CASE WHEN refused LIKE '%, but the log ends at %' THEN 'log end'
		WHEN refused LIKE '%, but this database is at %' THEN 'transaction'
		WHEN refused LIKE '%: its receipts were written on another server %' THEN 'server' ELSE 'reuse' END
	WHERE refused IS NOT NULL;

-- ---- settling and claiming ---------------------------------------------------------------------------------

-- What the owner of a lane asks for. It knows receipt n with its token, and the next one gets new_token.
CREATE TYPE outbox_request AS (
	target text,
	lane integer,
	owner text,
	n bigint,
	token bigint,
	new_token bigint,
	version bigint,      -- of the routing
	max bigint,          -- messages; 0: none, settle only
	max_bytes bigint,
	now timestamptz,     -- NULL: the server's time
	ahead bigint,        -- so many messages were read ahead, from this one to that one
	ahead_first bigint,
	ahead_last bigint
);

-- A moment of the log: a snapshot, the end of the log and a transaction number, read in this order. See outbox_receipt.
CREATE TYPE outbox_moment AS (
	snapshot pg_snapshot,
	log_end bigint,
	xid xid8
);
