-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: functions that the log itself calls for each row that is written. Unlike all other functions
-- they are created before the tables, which use them in defaults, constraints and triggers.
--
-- Here and in every other file: no backslash in a literal. Its meaning depends on the caller's
-- standard_conforming_strings.

-- The slot of a message: the same number on every store, see src/core/key_hash.h. Its lane is slot % lanes.
-- In p are the last twelve bytes, then all of them, with zeros where there are none: every place is a constant, and all is
-- one expression. It runs for every message.
CREATE OR REPLACE FUNCTION outbox_slot(key_or_id text) RETURNS smallint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	p bytea := substring(decode('000000000000000000000000', 'hex') || convert_to(key_or_id, 'UTF8')
			FROM length(convert_to(key_or_id, 'UTF8')) + 1)
		|| convert_to(key_or_id, 'UTF8') || decode('00000000', 'hex');
BEGIN
	RETURN ((7 * (length(p) - 16) + 3 * get_byte(p, 11)
		+ 5 * get_byte(p, 10)
		+ 7 * get_byte(p, 9)
		+ 9 * get_byte(p, 8)
		+ 11 * get_byte(p, 7)
		+ 13 * get_byte(p, 6)
		+ 15 * get_byte(p, 5)
		+ 17 * get_byte(p, 4)
		+ 19 * get_byte(p, 3)
		+ 21 * get_byte(p, 2)
		+ 23 * get_byte(p, 1)
		+ 25 * get_byte(p, 0)
		+ 30 * get_byte(p, 12)
		+ 38 * get_byte(p, 13)
		+ 46 * get_byte(p, 14)
		+ 54 * get_byte(p, 15)) % 4096)::smallint;
END $$;

-- A UUIDv7: 48 bits of milliseconds, then randomness with the version and variant in their places. Not in SQL: its text
-- would be parsed anew for every INSERT that is not a prepared statement. Qualified: see outbox_message_accept().
CREATE OR REPLACE FUNCTION outbox_uuid() RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
BEGIN
	RETURN pg_catalog.encode(pg_catalog.set_bit(pg_catalog.set_bit(pg_catalog.overlay(
		pg_catalog.uuid_send(pg_catalog.gen_random_uuid()), pg_catalog.substring(pg_catalog.int8send(
			(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000)::bigint), 3),
		1, 6), 52, 1), 53, 1), 'hex')::pg_catalog.uuid::pg_catalog.text;
END $$;

-- Every row that is written: what is NULL gets its default, since ORMs write NULL for what they do not set, and what is
-- wrong is refused. By a trigger and not by constraints, because PostgreSQL reads those from its catalog's text for every
-- INSERT: with eighteen of them that took as long as all the rest. A rule that is broken is named as a constraint would be;
-- the library finds the message by the id in the detail.
--
-- It runs with its owner's rights, so that publishers need none on the sequence. A search_path of its own would cost as
-- much as all the rules, so every name and operator is qualified: nobody's own ">" decides here.
DO $do$
DECLARE
	here text := quote_ident(current_schema());
BEGIN
	EXECUTE format('CREATE OR REPLACE FUNCTION outbox_message_accept() RETURNS trigger'
		' LANGUAGE plpgsql SECURITY DEFINER AS %L', format($body$
DECLARE
	rule text;
BEGIN
	IF NEW.id IS NULL OR NEW.created_at IS NULL OR NEW.event_time IS NULL THEN
		NEW.id := COALESCE(NEW.id, %1$s.outbox_uuid());
		NEW.created_at := COALESCE(NEW.created_at, pg_catalog.clock_timestamp());
		NEW.event_time := COALESCE(NEW.event_time, NEW.created_at);
	END IF;
	rule := CASE
		-- Numbers that were made up would hide a row from its readers. A row that is redacted or amended keeps its own:
		-- see outbox_message_tombstone().
		WHEN TG_OP OPERATOR(pg_catalog.=) 'INSERT' AND NEW.xid OPERATOR(pg_catalog.<>) pg_catalog.pg_current_xact_id()
			THEN 'xid is given by the log; leave it out of the INSERT'
		WHEN TG_OP OPERATOR(pg_catalog.=) 'INSERT' AND NEW.seq OPERATOR(pg_catalog.<>) pg_catalog.currval(%2$L::pg_catalog.regclass)
			THEN 'seq is given by the log; leave it out of the INSERT'
		WHEN pg_catalog.length(NEW.id) OPERATOR(pg_catalog.>) 255 OR NEW.id OPERATOR(pg_catalog.=) ''
			THEN 'id is text of 1 to 255 characters'
		WHEN pg_catalog.length(NEW.type) OPERATOR(pg_catalog.>) 500 OR NEW.type OPERATOR(pg_catalog.=) ''
			THEN 'type is text of 1 to 500 characters'
		WHEN pg_catalog.length(NEW.key) OPERATOR(pg_catalog.>) 255
			THEN 'key is text of at most 255 characters'
		-- an empty key is a key: all messages with it would wait for each other
		WHEN NEW.key OPERATOR(pg_catalog.=) ''
			THEN 'key is not empty; leave it NULL'
		WHEN NEW.kind OPERATOR(pg_catalog.<>) 'event' AND NEW.kind OPERATOR(pg_catalog.<>) 'command'
			THEN 'kind is event or command'
		WHEN NEW.priority OPERATOR(pg_catalog.<) (-100) OR NEW.priority OPERATOR(pg_catalog.>) 100
			THEN 'priority is a number from -100 to 100'
		WHEN pg_catalog.length(NEW.content_type) OPERATOR(pg_catalog.>) 2048
			THEN 'content_type is text of at most 2048 characters'
		WHEN pg_catalog.length(NEW.source) OPERATOR(pg_catalog.>) 2048
			THEN 'source is text of at most 2048 characters'
		WHEN pg_catalog.length(NEW.subject) OPERATOR(pg_catalog.>) 2048
			THEN 'subject is text of at most 2048 characters'
		WHEN pg_catalog.length(NEW.topic) OPERATOR(pg_catalog.>) 2048
			THEN 'topic is text of at most 2048 characters'
		WHEN pg_catalog.length(NEW.correlation_id) OPERATOR(pg_catalog.>) 2048
			THEN 'correlation_id is text of at most 2048 characters'
		WHEN pg_catalog.length(NEW.causation_id) OPERATOR(pg_catalog.>) 2048
			THEN 'causation_id is text of at most 2048 characters'
		WHEN pg_catalog.length(NEW.traceparent) OPERATOR(pg_catalog.>) 2048
			THEN 'traceparent is text of at most 2048 characters'
		-- whatever the library takes for headers (32 KiB of names and values, 64 of them) fits into this, escaped
		WHEN pg_catalog.octet_length(NEW.headers) OPERATOR(pg_catalog.>) 262144
			THEN 'headers is at most 256 KiB'
		WHEN pg_catalog.json_typeof(NEW.headers::pg_catalog.json) OPERATOR(pg_catalog.<>) 'object'
			THEN 'headers is a JSON object of strings'
		WHEN (NEW.payload IS NULL) OPERATOR(pg_catalog.=) (NEW.payload_bin IS NULL)
			THEN 'give payload (text) or payload_bin (bytea), one of the two'
		END;
	IF rule IS NOT NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = rule, TABLE = TG_TABLE_NAME, SCHEMA = TG_TABLE_SCHEMA,
			MESSAGE = pg_catalog.concat('new row for relation "', TG_TABLE_NAME, '" violates check constraint "', rule, '"'),
			DETAIL = pg_catalog.concat('Failing row contains (', NEW.xid, ', ', NEW.seq, ', ..., ',
				pg_catalog."left"(NEW.id, 64), ', ...).');
	END IF;
	RETURN NEW;
END $body$, here, here || '.outbox_message_seq_seq'));
END $do$;

-- Versions before 5 name these two in constraints and a trigger, which version 5 replaces.
CREATE OR REPLACE FUNCTION outbox_seq_is_from_the_log(seq bigint) RETURNS boolean
LANGUAGE sql AS $$ SELECT true $$;
CREATE OR REPLACE FUNCTION outbox_message_defaults() RETURNS trigger
LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;

-- This is a log: only retention removes rows. It sets outbox.janitor, inside its own transaction. Two kinds of change
-- are allowed, and only outbox_redact() and outbox_amend() make them: outbox.redact names the message.
CREATE OR REPLACE FUNCTION outbox_message_keep() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' THEN
		IF coalesce(current_setting('outbox.redact', true), '') = '' THEN
			RAISE EXCEPTION 'outbox_message is a log: a message never changes after its insert; publish a new one';
		END IF;
	ELSIF current_setting('outbox.janitor', true) IS DISTINCT FROM 'on' THEN
		RAISE EXCEPTION 'outbox_message is a log: messages are removed by retention; use outbox purge, or outbox discard to stop a delivery';
	END IF;
	RETURN NULL;
END $$;

-- Setting that by hand allows nothing but redacting a message, or changing a payload whose former version is kept.
CREATE OR REPLACE FUNCTION outbox_message_tombstone() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	IF current_setting('outbox.redact', true) IS DISTINCT FROM OLD.seq::text OR NEW.seq <> OLD.seq
			OR NEW.xid <> OLD.xid OR NEW.id <> OLD.id OR NEW.type <> OLD.type
			OR NEW.created_at <> OLD.created_at OR NEW.event_time <> OLD.event_time
			OR outbox_slot(coalesce(NEW.key, NEW.id)) <> OLD.slot
			OR (NEW.payload IS DISTINCT FROM '{"redacted":true}' OR NEW.headers IS NOT NULL OR NEW.subject IS NOT NULL)
			AND ((NEW.key, NEW.kind, NEW.published, NEW.priority, NEW.due_at, NEW.expires_at, NEW.source, NEW.subject, NEW.topic,
					NEW.correlation_id, NEW.causation_id, NEW.traceparent)
				IS DISTINCT FROM (OLD.key, OLD.kind, OLD.published, OLD.priority, OLD.due_at, OLD.expires_at, OLD.source, OLD.subject,
					OLD.topic, OLD.correlation_id, OLD.causation_id, OLD.traceparent)
				OR NOT EXISTS (SELECT FROM outbox_amended a WHERE a.seq = OLD.seq
					AND (a.payload, a.payload_bin, a.headers, a.content_type)
						IS NOT DISTINCT FROM (OLD.payload, OLD.payload_bin, OLD.headers, OLD.content_type))) THEN
		RAISE EXCEPTION 'outbox_message is a log: a message never changes after its insert; publish a new one';
	END IF;
	RETURN NEW;
END $$;
