-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL 13 and later, schema version 1: the tables.
--
-- Messages are a log, receipts are its readers' log, and only trouble gets a row of its own.
-- Everything lives in the first schema of search_path; `outbox init --schema app` sets that first.
--
-- What holds data has versions, and a version never changes: what comes later is a file of its own (v2.sql). The functions
-- that are named here are in message.sql.

-- What this outbox is: schema (the version of these files), min_reader (the oldest program that can work
-- with it), lanes per target, partitioned, cluster (whose transaction numbers these are).
CREATE TABLE outbox_meta (
	name text PRIMARY KEY,
	value text NOT NULL
);

-- The log. Inserting one row is publishing:
--     INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', '42', '{"id":42}');
-- Everything but type and the payload may be left out or NULL. A row never changes after its insert.
--
-- xid comes before seq, so that a row's transaction number is taken before its place in the log: then
-- every row up to seq L has a smaller xid than a transaction that began after L was read. Readers rely on it.
CREATE TABLE outbox_message (
	xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
	seq bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) NOT NULL,
	-- early in the row, since every reader looks at it
	slot smallint GENERATED ALWAYS AS (outbox_slot(coalesce(key, id))) STORED,
	-- give your own to make a repeated publish harmless
	id text DEFAULT outbox_uuid()
		CONSTRAINT "id is text of 1 to 255 characters"
		CHECK (length(id) BETWEEN 1 AND 255),
	type text NOT NULL
		CONSTRAINT "type is text of 1 to 500 characters"
		CHECK (length(type) BETWEEN 1 AND 500),
	-- messages of one key are delivered in order
	key text
		CONSTRAINT "key is text of at most 255 characters"
		CHECK (length(key) <= 255),
	-- NULL means event
	kind text
		CONSTRAINT "kind is event or command"
		CHECK (kind IN ('event', 'command')),
	-- true: may also leave the house, to external targets
	published boolean,
	priority smallint
		CONSTRAINT "priority is a number from -100 to 100"
		CHECK (priority BETWEEN -100 AND 100),
	created_at timestamptz DEFAULT clock_timestamp(),
	event_time timestamptz DEFAULT clock_timestamp(),
	-- not to be delivered before, not to be delivered after
	due_at timestamptz,
	expires_at timestamptz,
	-- NULL means application/json for payload, application/octet-stream for payload_bin
	content_type text
		CONSTRAINT "content_type is text of at most 2048 characters"
		CHECK (length(content_type) <= 2048),
	-- NULL means /outbox/<the store's name>
	source text
		CONSTRAINT "source is text of at most 2048 characters"
		CHECK (length(source) <= 2048),
	subject text
		CONSTRAINT "subject is text of at most 2048 characters"
		CHECK (length(subject) <= 2048),
	topic text
		CONSTRAINT "topic is text of at most 2048 characters"
		CHECK (length(topic) <= 2048),
	correlation_id text
		CONSTRAINT "correlation_id is text of at most 2048 characters"
		CHECK (length(correlation_id) <= 2048),
	causation_id text
		CONSTRAINT "causation_id is text of at most 2048 characters"
		CHECK (length(causation_id) <= 2048),
	traceparent text
		CONSTRAINT "traceparent is text of at most 2048 characters"
		CHECK (length(traceparent) <= 2048),
	-- {"name":"value", ...}
	headers text
		CONSTRAINT "headers is a JSON object of strings"
		CHECK (json_typeof(headers::json) = 'object'),
	-- exactly one of the two. Text is text: no backslash is ever eaten
	payload text,
	payload_bin bytea,
	CONSTRAINT "give payload (text) or payload_bin (bytea), one of the two"
		CHECK ((payload IS NULL) <> (payload_bin IS NULL)),
	CONSTRAINT outbox_message_pkey PRIMARY KEY (seq)
);
-- With partitions (outbox init --partition auto) it is divided by seq, and this table becomes the default
-- partition, which catches what no other is there for. Then only seq is unique: ids given are remembered below.
DO $do$
BEGIN
	IF current_setting('outbox.partition', true) = 'on' THEN
		ALTER TABLE outbox_message ALTER COLUMN seq DROP IDENTITY;
		ALTER TABLE outbox_message RENAME TO outbox_message_default;
		ALTER INDEX outbox_message_pkey RENAME TO outbox_message_default_pkey;
		CREATE TABLE outbox_message (LIKE outbox_message_default INCLUDING ALL EXCLUDING INDEXES, PRIMARY KEY (seq))
			PARTITION BY RANGE (seq);
		ALTER TABLE outbox_message ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (CACHE 1);
		ALTER TABLE outbox_message ATTACH PARTITION outbox_message_default DEFAULT;
		CREATE INDEX outbox_message_id ON outbox_message (id);
		INSERT INTO outbox_meta (name, value) VALUES ('partitioned', '1'), ('partition_rows',
			coalesce(nullif(current_setting('outbox.partition_rows', true), ''), '1000000'));
	ELSE
		CREATE UNIQUE INDEX outbox_message_id ON outbox_message (id);
	END IF;
END $do$;
CREATE INDEX outbox_message_xid ON outbox_message (xid, seq);

-- With partitions: the ids that publishers gave by outbox_publish() or the library, each accepted once within the
-- retained log. seq: about where its message is.
CREATE TABLE outbox_id (
	id text PRIMARY KEY,
	seq bigint NOT NULL
);
CREATE INDEX outbox_id_seq ON outbox_id (seq);

-- Numbers that were made up would hide a row from its readers. NOT VALID: a dump may be loaded.
ALTER TABLE outbox_message ADD CONSTRAINT "xid is given by the log; leave it out of the INSERT"
	CHECK (xid = pg_current_xact_id()) NOT VALID;
ALTER TABLE outbox_message ADD CONSTRAINT "seq is given by the log; leave it out of the INSERT"
	CHECK (outbox_seq_is_from_the_log(seq)) NOT VALID;

CREATE TRIGGER outbox_message_defaults BEFORE INSERT ON outbox_message FOR EACH ROW
WHEN (NEW.id IS NULL OR NEW.created_at IS NULL OR NEW.event_time IS NULL)
EXECUTE FUNCTION outbox_message_defaults();

CREATE TRIGGER outbox_message_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON outbox_message
FOR EACH STATEMENT EXECUTE FUNCTION outbox_message_keep();

-- Destinations of the relay.
CREATE TABLE outbox_target (
	name text PRIMARY KEY,
	version bigint NOT NULL,                    -- of its routing
	route text NOT NULL,                        -- the routing as configured
	hold boolean NOT NULL DEFAULT false,        -- behind a failed message its key waits
	unordered boolean NOT NULL DEFAULT false,   -- keys mean nothing here
	paused boolean NOT NULL DEFAULT false,
	paused_by text,
	paused_reason text,
	paused_at timestamptz,
	created_at timestamptz NOT NULL,
	start pg_snapshot NOT NULL                  -- messages visible in it were never meant for this target
);

-- Every version of a target's routing. The last one outlives the target, so that a version number is
-- never used twice.
CREATE TABLE outbox_route (
	target text NOT NULL,
	version bigint NOT NULL,
	types text[],                               -- LIKE patterns, any of them; NULL: every type
	kind text,                                  -- NULL: both
	published_only boolean NOT NULL DEFAULT false,
	PRIMARY KEY (target, version)
);

-- Who works on a lane. Liveness only: correctness never depends on this table.
CREATE TABLE outbox_lane (
	target text NOT NULL,
	lane integer NOT NULL,
	owner text,
	lease_until timestamptz NOT NULL DEFAULT '-infinity',
	takeovers bigint NOT NULL DEFAULT 0,        -- that found messages in flight, ever
	PRIMARY KEY (target, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- Who competes for lanes.
CREATE TABLE outbox_worker (
	target text NOT NULL,
	owner text NOT NULL,
	alive_until timestamptz NOT NULL,
	outage text,                                -- why the target is out of reach for this worker, for people
	outage_since timestamptz,
	PRIMARY KEY (target, owner)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- A lane's log: one row per settled batch, numbered without a gap, append-only. The last one says where
-- the lane stands and what is in flight; its token is the fence.
--
-- Where it stands: every message visible in the snapshot prev is settled. The window that is being read
-- now are the messages visible in cur and not in prev; of these, all up to seq pos are settled and those
-- in (pos, claim_end] are in flight. A window that is read to its end becomes prev; cur = prev means that
-- none is open. With each snapshot go two numbers, read after it and in this order: the end of the log
-- and a transaction number. A message at or below that seq has a smaller xid than that number, and none
-- visible in the snapshot has a higher seq.
CREATE TABLE outbox_receipt (
	target text NOT NULL,
	lane integer NOT NULL,
	n bigint NOT NULL,
	token bigint NOT NULL,
	number bigint GENERATED ALWAYS AS IDENTITY,     -- over all lanes, roughly in the order of settlement
	settled_at timestamptz NOT NULL,
	route_version bigint NOT NULL,                  -- by which this receipt's claim was routed
	prev_seq bigint NOT NULL,
	prev_xid xid8 NOT NULL,
	cur_seq bigint NOT NULL,
	cur_xid xid8 NOT NULL,
	pos bigint NOT NULL,
	claim_end bigint NOT NULL,                      -- 9223372036854775807: to the end of the window
	claim_seq bigint NOT NULL DEFAULT 0,            -- the first message in flight
	claim_last bigint NOT NULL DEFAULT 0,           -- the last of them
	caution_end bigint NOT NULL DEFAULT 0,          -- one message at a time until pos is here ...
	suspect_seq bigint NOT NULL DEFAULT 0,          -- alone in flight when the owner died
	settled_to bigint NOT NULL DEFAULT 0,           -- what this receipt settled of the window before it: up to here
	delivered_total bigint NOT NULL DEFAULT 0,      -- by this lane, ever
	retried_total bigint NOT NULL DEFAULT 0,
	claim_count integer NOT NULL DEFAULT 0,         -- messages in flight, detours included
	claim_detours integer NOT NULL DEFAULT 0,       -- how many of them are detours
	takeovers integer NOT NULL DEFAULT 0,           -- in a row, nothing settled in between
	caution_left integer NOT NULL DEFAULT 0,        -- ... and so many messages were settled
	delivered integer NOT NULL DEFAULT 0,
	retried integer NOT NULL DEFAULT 0,
	failed integer NOT NULL DEFAULT 0,
	parked integer NOT NULL DEFAULT 0,
	deferred integer NOT NULL DEFAULT 0,
	floor bigint NOT NULL DEFAULT 0,                -- settled to here, whatever the transactions: see outbox_rebase()
	owner text,
	prev pg_snapshot NOT NULL,
	cur pg_snapshot NOT NULL,
	PRIMARY KEY (target, lane, n)
);
CREATE UNIQUE INDEX outbox_receipt_number ON outbox_receipt (number);

-- Deliveries that did not go straight through. A delivered one stays as history until retention.
CREATE TABLE outbox_detour (
	target text NOT NULL,
	seq bigint NOT NULL,
	id text NOT NULL,
	key text,
	lane integer NOT NULL,
	state text NOT NULL CHECK (state IN ('pending', 'sending', 'delivered', 'failed', 'discarded')),
	why text CHECK (why IN ('retry', 'deferred', 'parked')), -- of pending ones
	attempts integer NOT NULL DEFAULT 0,
	next_attempt_at timestamptz,                -- NULL: parked and not the first of its key
	failing_since timestamptz,
	suspect boolean NOT NULL DEFAULT false,     -- must be sent alone
	ahead boolean NOT NULL DEFAULT false,       -- written by an operator before its lane came by
	last_error text,
	last_status_at timestamptz NOT NULL,
	reason text,                                -- an operator's
	owner text,
	n bigint,                                   -- the receipt that settled it last
	PRIMARY KEY (target, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX outbox_detour_state ON outbox_detour (target, state, seq, why);
CREATE INDEX outbox_detour_open ON outbox_detour (target, lane, seq)
	WHERE state IN ('pending', 'sending') OR ahead;
CREATE INDEX outbox_detour_due ON outbox_detour (target, lane, next_attempt_at, seq)
	WHERE state = 'pending' AND next_attempt_at IS NOT NULL;
CREATE INDEX outbox_detour_key ON outbox_detour (target, key, seq)
	WHERE state IN ('pending', 'failed') AND key IS NOT NULL;
CREATE INDEX outbox_detour_settled ON outbox_detour (target, lane, n, seq);

-- Messages that a live detour still needs when their partition goes. Readers look in both.
CREATE TABLE outbox_kept (LIKE outbox_message, PRIMARY KEY (seq));
CREATE INDEX outbox_kept_id ON outbox_kept (id);

-- Who did what, when, why.
CREATE TABLE outbox_audit (
	number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at timestamptz NOT NULL,
	actor text,
	action text NOT NULL,
	target text,
	id text,
	seq bigint,
	reason text,
	detail text                                 -- JSON: what it was before
);
CREATE INDEX outbox_audit_id ON outbox_audit (id, number);
