-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: from schema version 4 to version 5. A program that knows version 1 goes on working with the
-- result (min_reader 1). Like every version it never changes; functions and views are in files of their own, which do.

-- ---- what an INSERT may say -------------------------------------------------------------------------------

-- One trigger in place of eighteen constraints and the trigger for defaults, with the same rules: the constraints were
-- half of what an INSERT costs. See message.sql. Rows that are there stay as they are.
DO $do$
DECLARE
	c record;
	names text[] := ARRAY['id is text of 1 to 255 characters', 'type is text of 1 to 500 characters',
		'key is text of at most 255 characters', 'kind is event or command', 'priority is a number from -100 to 100',
		'content_type is text of at most 2048 characters', 'source is text of at most 2048 characters',
		'subject is text of at most 2048 characters', 'topic is text of at most 2048 characters',
		'correlation_id is text of at most 2048 characters', 'causation_id is text of at most 2048 characters',
		'traceparent is text of at most 2048 characters', 'headers is a JSON object of strings',
		'give payload (text) or payload_bin (bytea), one of the two',
		'xid is given by the log; leave it out of the INSERT', 'seq is given by the log; leave it out of the INSERT',
		'key is not empty; leave it NULL', 'headers is at most 256 KiB'];
BEGIN
	-- of the log; then of its partitions, which have some of them from their own making
	FOR c IN SELECT k.conname FROM pg_constraint k
			WHERE k.conrelid = 'outbox_message'::regclass AND k.contype = 'c' AND k.conname = ANY (names) LOOP
		EXECUTE format('ALTER TABLE outbox_message DROP CONSTRAINT %I', c.conname);
	END LOOP;
	FOR c IN SELECT k.conrelid::regclass AS partition, k.conname FROM pg_constraint k JOIN pg_inherits i ON i.inhrelid = k.conrelid
			WHERE i.inhparent = 'outbox_message'::regclass AND k.contype = 'c' AND k.conname = ANY (names) LOOP
		EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.partition, c.conname);
	END LOOP;
END $do$;

DROP TRIGGER IF EXISTS outbox_message_defaults ON outbox_message;
CREATE TRIGGER outbox_message_accept BEFORE INSERT OR UPDATE ON outbox_message
FOR EACH ROW EXECUTE FUNCTION outbox_message_accept();

-- ---- settling and claiming ---------------------------------------------------------------------------------

-- The rows that a relay has read ahead, if their lane has detours.
CREATE TYPE outbox_ahead AS (
	seqs bigint[],
	keys text[],
	sizes bigint[] -- as outbox_weight() says
);

-- ---- the history of failed attempts ------------------------------------------------------------------------

-- A try to deliver that failed. It goes with its detour: see attempt.sql.
CREATE TABLE outbox_attempt (
	target text NOT NULL,
	seq bigint NOT NULL,
	n bigint NOT NULL,        -- the receipt that settled it
	at timestamptz NOT NULL,
	attempt integer NOT NULL, -- which one it was, from 1 on
	verdict text NOT NULL CHECK (verdict IN ('rejected', 'retry', 'unknown')),
	native integer NOT NULL,  -- the broker's code; 0: it gave none
	reason text,              -- NULL: redacted
	answer text,              -- what the broker said in full, up to 4 KiB; NULL: the reason is all
	PRIMARY KEY (target, seq, n)
);
CREATE TRIGGER outbox_detour_forget AFTER DELETE ON outbox_detour REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION outbox_forget_attempts();

-- ---- cancelled messages ------------------------------------------------------------------------------------

-- Scheduled messages that were cancelled before they were due. The trigger does it, at the end of the transaction: see
-- cancel.sql. A row goes with its message.
CREATE TABLE outbox_cancelled (
	seq bigint PRIMARY KEY,
	id text NOT NULL,
	at timestamptz NOT NULL,
	actor text,
	reason text NOT NULL
);
CREATE CONSTRAINT TRIGGER outbox_cancelled_commit AFTER INSERT ON outbox_cancelled DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION outbox_cancelled_commit();
