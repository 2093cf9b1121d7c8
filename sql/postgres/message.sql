-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: functions that the log itself calls for each row that is written. Unlike all other functions
-- they are created before the tables, which use them in defaults, constraints and triggers.
--
-- Here and in every other file: no backslash in a literal. Its meaning depends on the caller's
-- standard_conforming_strings.

-- The slot of a message: the same number on every store, see src/core/key_hash.h. Its lane is slot % lanes.
-- The last twelve bytes and the first four, with zeros where there are none, in one expression: it runs
-- for every message.
CREATE OR REPLACE FUNCTION outbox_slot(key_or_id text) RETURNS smallint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
	p bytea := decode('000000000000000000000000', 'hex') || convert_to(key_or_id, 'UTF8') || decode('00000000', 'hex');
	n integer := length(p) - 16;
BEGIN
	RETURN (7 * n + 3 * get_byte(p, n + 11)
		+ 5 * get_byte(p, n + 10)
		+ 7 * get_byte(p, n + 9)
		+ 9 * get_byte(p, n + 8)
		+ 11 * get_byte(p, n + 7)
		+ 13 * get_byte(p, n + 6)
		+ 15 * get_byte(p, n + 5)
		+ 17 * get_byte(p, n + 4)
		+ 19 * get_byte(p, n + 3)
		+ 21 * get_byte(p, n + 2)
		+ 23 * get_byte(p, n + 1)
		+ 25 * get_byte(p, n + 0)
		+ 30 * get_byte(p, 12)
		+ 38 * get_byte(p, 13)
		+ 46 * get_byte(p, 14)
		+ 54 * get_byte(p, 15)) % 4096;
END $$;

-- A UUIDv7: 48 bits of milliseconds, then randomness with the version and variant in their places.
CREATE OR REPLACE FUNCTION outbox_uuid() RETURNS text
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
	SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
		PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
		FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid::text
$$;

-- Does this number come from the log's sequence? It runs for every row with its owner's rights, so that publishers need
-- none on the sequence; hence every name in it is qualified and no search_path is set.
DO $do$
BEGIN
	EXECUTE format('CREATE OR REPLACE FUNCTION outbox_seq_is_from_the_log(seq bigint) RETURNS boolean'
		' LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS %L', format(
		'BEGIN RETURN seq OPERATOR(pg_catalog.=) pg_catalog.currval(%L::pg_catalog.regclass); END',
		format('%I.outbox_message_seq_seq', current_schema())));
END $do$;

-- ORMs write NULL for what they do not set: NULL means the default.
CREATE OR REPLACE FUNCTION outbox_message_defaults() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	NEW.id := coalesce(NEW.id, outbox_uuid());
	NEW.created_at := coalesce(NEW.created_at, clock_timestamp());
	NEW.event_time := coalesce(NEW.event_time, NEW.created_at);
	RETURN NEW;
END $$;

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
