-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL, schema version 1: the types of what functions are given and return. A type cannot be replaced as a
-- function can: like a table it never changes.

-- What advance() is told of a claim: its number, first and last message, the last one that was not
-- returned, and an entry for each outcome but delivered (2 returned, 3 waiting, 4 deferred, 5 parked, 6 failed).
CREATE TYPE outbox_outcomes AS (
	count integer,
	first bigint,
	last bigint,
	last_kept bigint,
	seqs bigint[],
	outcomes integer[],
	attempts integer[],
	delays bigint[],
	dues timestamptz[],
	suspects boolean[],
	errors text[]
);

-- One message of a claim as the program reads it. The last row of an answer has only the head:
-- n, token, now, paused, stale route, cautious, next due time (times in microseconds since 1970), how many were read ahead.
CREATE TYPE outbox_claimed AS (
	head bigint[],
	seq bigint,
	id text,
	type text,
	key text,
	kind text,
	published boolean,
	created_at timestamptz,
	event_time timestamptz,
	due_at timestamptz,
	expires_at timestamptz,
	priority smallint,
	content_type text,
	source text,
	subject text,
	topic text,
	correlation_id text,
	causation_id text,
	traceparent text,
	headers text,
	payload text,
	payload_bin bytea,
	attempts integer,
	failing_since timestamptz,
	flags integer -- 1 detour, 2 suspect, 4 blocked: its payload is not loaded, 8 a dead letter
);

-- A target as a claim needs it.
CREATE TYPE outbox_view AS (
	version bigint,
	paused boolean,
	hold boolean,
	unordered boolean,
	lanes integer,
	types text[],
	kind text,
	published_only boolean,
	detours boolean -- the lane has any that matter to a claim
);

-- What outbox_publish() tells.
CREATE TYPE outbox_published AS (
	id text,
	seq bigint,
	repeated boolean -- this id was in the log already; nothing was written
);

-- What list and tail tell of a delivery.
CREATE TYPE outbox_look AS (
	seq bigint,
	id text,
	target text,
	type text,
	key text,
	lane integer,
	state text,
	why text,
	attempts integer,
	owner text,
	last_error text,
	reason text,
	event_time timestamptz,
	created_at timestamptz,
	last_status_at timestamptz,
	next_attempt_at timestamptz
);

-- What is looked for. NULL: any.
CREATE TYPE outbox_wanted AS (
	states text[],                              -- never NULL
	why text,
	type text,                                  -- a LIKE pattern
	key text,
	changed_before timestamptz,
	created_before timestamptz,
	seqs bigint[],
	after bigint,                               -- behind the page before
	max bigint
);

-- A target's routing and the last receipts of its lanes, lane 0 first. All lanes have settled what is at or
-- below low and does not belong to the transactions in late; none has settled what is behind log_end or
-- claimed what is behind claim_last.
CREATE TYPE outbox_reading AS (
	target text,
	start pg_snapshot,
	lanes integer,
	route outbox_route,
	last outbox_receipt[],
	routes outbox_route[],                      -- of the claims in flight
	late xid8[],
	low bigint,
	log_end bigint,
	claim_last bigint,
	detours boolean                             -- there are any that a lane has not passed, maybe
);

-- One row a lane, with its target's numbers; a row without a target when there is none.
CREATE TYPE outbox_numbers AS (
	now timestamptz,
	messages bigint,
	target text,
	paused boolean,
	paused_by text,
	paused_reason text,
	outage text,
	outage_since timestamptz,
	pending bigint,
	sending bigint,
	waiting bigint,
	deferred bigint,
	parked bigint,
	failed bigint,
	discarded bigint,
	delivered_ever bigint,
	delivered_minute bigint,
	retries_minute bigint,
	oldest timestamptz,
	lane integer,
	owner text,
	lease_until timestamptz,
	receipts bigint,
	takeovers bigint,
	refused text
);

-- Of which deliveries: what a filter says of them. The globs are LIKE patterns here.
CREATE TYPE outbox_act_filter AS (
	ids text[],          -- none: any
	target text,
	type text,
	key text,
	states text[],
	why text,
	changed timestamptz, -- last_status_at at or before
	created timestamptz, -- created_at at or before
	not_until timestamptz, -- pass over what is deferred to this very time
	after_seq bigint,    -- where the page before ended
	after_target text,
	max bigint
);

-- What is to be done with them.
CREATE TYPE outbox_act_order AS (
	action text,         -- requeue, discard, defer
	actor text,
	reason text,
	until timestamptz,
	dry_run boolean,
	allowed text[],      -- in which states: the lifecycle table's
	token bigint
);

-- Of a lane, what retention may take: see purge.sql.
CREATE TYPE outbox_cut AS (
	target text,
	lane integer,
	start pg_snapshot,
	bound outbox_receipt, -- what it settles is old enough; NULL: nothing is
	high bigint           -- no message behind it is old enough by receipts
);
