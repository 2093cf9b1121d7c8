-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite: the tables and indexes of version 1. They hold people's data, so this file never changes
-- again; what came later is in v2.sql and so on, views and triggers are in code.sql.
--
-- Messages are a log, receipts are its readers' log, and only trouble gets a row of its own.
-- All times are microseconds since 1970 UTC, as integers.

-- What this outbox is: schema (its version), min_reader (the oldest program that can work with
-- it), lanes per target, store_id. 'janitor' is there only inside a transaction that may delete.
CREATE TABLE outbox_meta (
	name TEXT PRIMARY KEY NOT NULL,
	value
) WITHOUT ROWID;

-- The log. Inserting one row is publishing:
--     INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', '42', '{"id":42}');
-- Everything but type and the payload may be left out or NULL. A row never changes after its insert.
-- Never give seq, and do not use INSERT OR REPLACE: it would silently replace a message.
CREATE TABLE outbox_message (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	-- a UUIDv7; give your own to make a repeated insert harmless (ON CONFLICT (id) DO NOTHING)
	id TEXT UNIQUE DEFAULT (lower(printf('%08x-%04x-7%s-%s%s-%s',
			CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) >> 16,
			CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) & 65535,
			substr(hex(randomblob(2)), 2),
			substr('89ab', 1 + (random() & 3), 1), substr(hex(randomblob(2)), 2),
			hex(randomblob(6)))))
		CONSTRAINT "id is text of 1 to 255 characters"
		CHECK (id IS NULL OR (typeof(id) = 'text' AND length(id) BETWEEN 1 AND 255
			AND instr(id, char(0)) = 0)),
	type TEXT NOT NULL
		CONSTRAINT "type is text of 1 to 500 characters"
		CHECK (typeof(type) = 'text' AND length(type) BETWEEN 1 AND 500),
	-- messages of one key are delivered in order
	key TEXT
		CONSTRAINT "key is text of at most 255 characters"
		CHECK (key IS NULL OR (typeof(key) = 'text' AND length(key) <= 255
			AND instr(key, char(0)) = 0)),
	-- NULL means event
	kind TEXT
		CONSTRAINT "kind is event or command"
		CHECK (kind IS NULL OR kind IN ('event', 'command')),
	-- 1: may also leave the house, to external targets
	published INTEGER
		CONSTRAINT "published is 0 or 1"
		CHECK (published IS NULL OR published IN (0, 1)),
	priority INTEGER
		CONSTRAINT "priority is a number from -100 to 100"
		CHECK (priority IS NULL OR (typeof(priority) = 'integer' AND priority BETWEEN -100 AND 100)),
	created_at INTEGER
		DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)
		CONSTRAINT "created_at is in microseconds since 1970, an integer"
		CHECK (created_at IS NULL OR typeof(created_at) = 'integer'),
	event_time INTEGER
		DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)
		CONSTRAINT "event_time is in microseconds since 1970, an integer"
		CHECK (event_time IS NULL OR typeof(event_time) = 'integer'),
	-- not to be delivered before, not to be delivered after
	due_at INTEGER
		CONSTRAINT "due_at is in microseconds since 1970, an integer"
		CHECK (due_at IS NULL OR typeof(due_at) = 'integer'),
	expires_at INTEGER
		CONSTRAINT "expires_at is in microseconds since 1970, an integer"
		CHECK (expires_at IS NULL OR typeof(expires_at) = 'integer'),
	-- NULL means application/json for payload, application/octet-stream for payload_bin
	content_type TEXT
		CONSTRAINT "content_type is text of at most 2048 characters"
		CHECK (content_type IS NULL OR (typeof(content_type) = 'text' AND length(content_type) <= 2048)),
	-- NULL means /outbox/<the store's name>
	source TEXT
		CONSTRAINT "source is text of at most 2048 characters"
		CHECK (source IS NULL OR (typeof(source) = 'text' AND length(source) <= 2048)),
	subject TEXT
		CONSTRAINT "subject is text of at most 2048 characters"
		CHECK (subject IS NULL OR (typeof(subject) = 'text' AND length(subject) <= 2048)),
	topic TEXT
		CONSTRAINT "topic is text of at most 2048 characters"
		CHECK (topic IS NULL OR (typeof(topic) = 'text' AND length(topic) <= 2048)),
	correlation_id TEXT
		CONSTRAINT "correlation_id is text of at most 2048 characters"
		CHECK (correlation_id IS NULL OR (typeof(correlation_id) = 'text' AND length(correlation_id) <= 2048)),
	causation_id TEXT
		CONSTRAINT "causation_id is text of at most 2048 characters"
		CHECK (causation_id IS NULL OR (typeof(causation_id) = 'text' AND length(causation_id) <= 2048)),
	traceparent TEXT
		CONSTRAINT "traceparent is text of at most 2048 characters"
		CHECK (traceparent IS NULL OR (typeof(traceparent) = 'text' AND length(traceparent) <= 2048)),
	-- {"name":"value", ...}. Only its outside is checked here: with trusted_schema off, SQLite
	-- 3.40 refuses every insert into a table whose CHECK calls json_valid()
	headers TEXT
		CONSTRAINT "headers is a JSON object of strings"
		CHECK (headers IS NULL OR (typeof(headers) = 'text'
			AND trim(headers, char(9, 10, 13, 32)) GLOB '{*}')),
	-- exactly one of the two, and last: looking at the other columns never reads a large payload
	payload TEXT,
	payload_bin BLOB,
	CONSTRAINT "give payload (text) or payload_bin (BLOB), exactly one of the two"
	CHECK ((typeof(payload) = 'text' AND payload_bin IS NULL)
		OR (payload IS NULL AND typeof(payload_bin) = 'blob'))
);

-- Destinations of the relay.
CREATE TABLE outbox_target (
	name TEXT PRIMARY KEY NOT NULL,
	version INTEGER NOT NULL,             -- of its routing
	route TEXT NOT NULL,                  -- the routing as configured
	hold INTEGER NOT NULL DEFAULT 0,      -- behind a failed message its key waits
	unordered INTEGER NOT NULL DEFAULT 0, -- keys mean nothing here
	paused INTEGER NOT NULL DEFAULT 0,
	paused_by TEXT,
	paused_reason TEXT,
	paused_at INTEGER,
	created_at INTEGER NOT NULL,
	start_seq INTEGER NOT NULL            -- messages up to here were never meant for it
) WITHOUT ROWID;

-- The rules of every version of a target's routing: a message is routed when one row matches. Rows of
-- the last version outlive the target, so that a version number is never used twice.
CREATE TABLE outbox_route (
	target TEXT NOT NULL,
	version INTEGER NOT NULL,
	type_glob TEXT NOT NULL,
	kind TEXT,                            -- NULL: both
	published_only INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (target, version, type_glob)
) WITHOUT ROWID;

-- Who works on a lane. Liveness only: correctness never depends on this table.
CREATE TABLE outbox_lane (
	target TEXT NOT NULL,
	lane INTEGER NOT NULL,
	owner TEXT,
	lease_until INTEGER NOT NULL DEFAULT 0,
	takeovers INTEGER NOT NULL DEFAULT 0, -- that found messages in flight, ever
	PRIMARY KEY (target, lane)
) WITHOUT ROWID;

-- Who competes for lanes.
CREATE TABLE outbox_worker (
	target TEXT NOT NULL,
	owner TEXT NOT NULL,
	alive_until INTEGER NOT NULL,
	outage TEXT,           -- why the target is out of reach for this worker, for people
	outage_since INTEGER,
	PRIMARY KEY (target, owner)
) WITHOUT ROWID;

-- A lane's log: one row per settled batch, numbered without a gap, append-only. The last one says where
-- the lane stands and what is in flight; its token is the fence.
CREATE TABLE outbox_receipt (
	number INTEGER PRIMARY KEY,           -- in the order of settlement, over all lanes
	target TEXT NOT NULL,
	lane INTEGER NOT NULL,
	n INTEGER NOT NULL,
	token INTEGER NOT NULL,
	owner TEXT,
	settled_at INTEGER NOT NULL,
	route_version INTEGER NOT NULL,       -- by which (from_seq, claim_end] was routed
	from_seq INTEGER NOT NULL,            -- this receipt settled (from_seq, pos]
	pos INTEGER NOT NULL,                 -- everything up to here is settled for this lane
	claim_end INTEGER NOT NULL,           -- log rows in (pos, claim_end] of this lane are in flight
	claim_count INTEGER NOT NULL DEFAULT 0,   -- messages in flight, detours included
	claim_detours INTEGER NOT NULL DEFAULT 0, -- how many of them are detours
	claim_seq INTEGER NOT NULL DEFAULT 0,     -- the first of them
	claim_last INTEGER NOT NULL DEFAULT 0,    -- the last of them
	takeovers INTEGER NOT NULL DEFAULT 0,     -- in a row, nothing settled in between
	caution_end INTEGER NOT NULL DEFAULT 0,   -- one message at a time until pos is here ...
	caution_left INTEGER NOT NULL DEFAULT 0,  -- ... and so many messages were settled
	suspect_seq INTEGER NOT NULL DEFAULT 0,   -- alone in flight when the owner died
	delivered INTEGER NOT NULL DEFAULT 0,
	retried INTEGER NOT NULL DEFAULT 0,
	failed INTEGER NOT NULL DEFAULT 0,
	parked INTEGER NOT NULL DEFAULT 0,
	deferred INTEGER NOT NULL DEFAULT 0,
	delivered_total INTEGER NOT NULL DEFAULT 0, -- by this lane, ever
	retried_total INTEGER NOT NULL DEFAULT 0,
	UNIQUE (target, lane, n)
);
CREATE INDEX outbox_receipt_pos ON outbox_receipt (target, lane, pos, n);

-- Deliveries that did not go straight through. A delivered one stays as history until retention.
CREATE TABLE outbox_detour (
	target TEXT NOT NULL,
	seq INTEGER NOT NULL,
	id TEXT NOT NULL,
	key TEXT,
	lane INTEGER NOT NULL,
	state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'delivered', 'failed', 'discarded')),
	why TEXT CHECK (why IN ('retry', 'deferred', 'parked')), -- of pending ones
	attempts INTEGER NOT NULL DEFAULT 0,
	next_attempt_at INTEGER,              -- NULL: parked and not the first of its key
	failing_since INTEGER,
	suspect INTEGER NOT NULL DEFAULT 0,   -- must be sent alone
	last_error TEXT,
	last_status_at INTEGER NOT NULL,
	reason TEXT,                          -- an operator's
	owner TEXT,
	n INTEGER,                            -- the receipt that settled it last
	PRIMARY KEY (target, seq)
) WITHOUT ROWID;
CREATE INDEX outbox_detour_state ON outbox_detour (target, state, seq, why);
CREATE INDEX outbox_detour_due ON outbox_detour (target, lane, next_attempt_at, seq)
	WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
CREATE INDEX outbox_detour_key ON outbox_detour (target, key, state, seq) WHERE key IS NOT NULL;
CREATE INDEX outbox_detour_sending ON outbox_detour (target, lane, seq) WHERE state = 'sending';
CREATE INDEX outbox_detour_settled ON outbox_detour (target, lane, n, seq);

-- Who did what, when, why.
CREATE TABLE outbox_audit (
	number INTEGER PRIMARY KEY AUTOINCREMENT,
	at INTEGER NOT NULL,
	actor TEXT,
	action TEXT NOT NULL,
	target TEXT,
	id TEXT,
	seq INTEGER,
	reason TEXT,
	detail TEXT                           -- JSON: what it was before
);
CREATE INDEX outbox_audit_id ON outbox_audit (id, number);
