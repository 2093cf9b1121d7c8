-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: from schema version 2 to version 3. Only additions: a program that knows version 1 goes on
-- working with the result (min_reader 1). Like every version it never changes; functions and views are in files of their
-- own, which do.

-- ---- workers ----------------------------------------------------------------------------------------------

ALTER TABLE outbox_worker ADD COLUMN place text; -- where it sends to, without secrets; NULL: not known

-- Relays that are configured for a target and do not serve it, and why: for people. Apart from outbox_worker, which
-- counts those who share the lanes.
CREATE TABLE outbox_unserved (
	target text NOT NULL,      -- need not be registered
	owner text NOT NULL,
	alive_until timestamptz NOT NULL,
	since timestamptz NOT NULL,
	why text NOT NULL,
	PRIMARY KEY (target, owner)
);

-- ---- ages --------------------------------------------------------------------------------------------------

-- Since when it can be sent, where that is not since its message's commit: the time at which it was due, was deferred to,
-- was requeued or arrived as a dead letter. A retry does not change it.
ALTER TABLE outbox_detour ADD COLUMN ready_at timestamptz;
CREATE INDEX outbox_detour_ready ON outbox_detour (target, ready_at, seq) WHERE state IN ('pending', 'sending');
ALTER TABLE outbox_target ADD COLUMN resumed_at timestamptz; -- when its last pause ended; NULL: it never was paused

-- ---- what an INSERT may say -------------------------------------------------------------------------------

-- An empty key is a key: all messages with it would wait for each other. Rows that have one stay as they are.
ALTER TABLE outbox_message ADD CONSTRAINT "key is not empty; leave it NULL" CHECK (key <> '') NOT VALID;

-- Whatever the library takes for headers (32 KiB of names and values, 64 of them) fits into this, escaped.
ALTER TABLE outbox_message ADD CONSTRAINT "headers is at most 256 KiB" CHECK (octet_length(headers) <= 262144) NOT VALID;

-- ---- locks -------------------------------------------------------------------------------------------------

-- Whoever works on a lane, changes a target (lane -2) or its leases (-1) has locked its row here, for one transaction.
-- Not advisory locks: everybody may take those, also who may only publish. Not logged: locking a row would write
-- to the server's log. Rows are made when they are needed, and made again after a crash of the server.
CREATE TABLE outbox_lock (
	target text NOT NULL,
	lane integer NOT NULL,
	PRIMARY KEY (target, lane)
);
ALTER TABLE outbox_lock SET UNLOGGED;

-- ---- positions of another history -------------------------------------------------------------------------

-- Why relays refuse this lane, and since when; NULL: they do not. outbox_rebase() takes it away.
ALTER TABLE outbox_lane ADD COLUMN refused text, ADD COLUMN refused_at timestamptz;

-- ---- looking ----------------------------------------------------------------------------------------------

ALTER TYPE outbox_wanted ADD ATTRIBUTE now timestamptz; -- what is due later is deferred, read or not

-- ---- corrections ------------------------------------------------------------------------------------------

-- What a message was before it was amended, the n-th time. It goes with its message, and with a redaction.
CREATE TABLE outbox_amended (
	seq bigint NOT NULL,
	n integer NOT NULL,
	at timestamptz NOT NULL,
	actor text,
	reason text,
	content_type text,
	headers text,
	payload text,
	payload_bin bytea,
	PRIMARY KEY (seq, n)
);
