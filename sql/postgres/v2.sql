-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: from schema version 1 to version 2. Only additions: a program that knows version 1 goes on
-- working with the result (min_reader 1). Like every version it never changes; functions and views are in files of their
-- own, which do.

-- ---- dead letters -----------------------------------------------------------------------------------------

ALTER TABLE outbox_target ADD COLUMN dead_letter text; -- the target that gets what fails here

-- It failed at another target, which has this one for its dead letter: where, why, after how many failed
-- tries, when; and which claim of this lane was in flight then (a receipt's n), if one was.
ALTER TABLE outbox_detour ADD COLUMN dead_target text, ADD COLUMN dead_reason text,
	ADD COLUMN dead_attempts integer, ADD COLUMN dead_at timestamptz, ADD COLUMN dead_n bigint;

-- ---- claims ------------------------------------------------------------------------------------------------

-- Those that an operator wrote ahead of a lane: among all that wait they were found by looking at each.
CREATE INDEX outbox_detour_ahead ON outbox_detour (target, lane, seq) WHERE ahead;

-- ---- bands -------------------------------------------------------------------------------------------------

ALTER TABLE outbox_target ADD COLUMN band_of text; -- the target whose messages are split up; NULL: none

-- ---- redaction --------------------------------------------------------------------------------------------

-- The log lets one kind of change through, made by outbox_redact() alone: outbox.redact names the message. The
-- constraints of seq and xid are of every new version of a row, so they must know it, too.
DO $do$
DECLARE
	c record;
	names text[] := ARRAY['xid is given by the log; leave it out of the INSERT',
		'seq is given by the log; leave it out of the INSERT'];
BEGIN
	FOR c IN SELECT n.nspname, o.relname, k.conname FROM pg_constraint k JOIN pg_class o ON o.oid = k.conrelid
			JOIN pg_namespace n ON n.oid = o.relnamespace
			WHERE k.conname = ANY (names) AND n.nspname = current_schema() AND k.coninhcount = 0 LOOP
		EXECUTE format('ALTER TABLE %I.%I DROP CONSTRAINT IF EXISTS %I', c.nspname, c.relname, c.conname);
	END LOOP;
END $do$;
ALTER TABLE outbox_message ADD CONSTRAINT "xid is given by the log; leave it out of the INSERT"
	CHECK (CASE WHEN current_setting('outbox.redact', true) = seq::text THEN true
		ELSE xid = pg_current_xact_id() END) NOT VALID;
ALTER TABLE outbox_message ADD CONSTRAINT "seq is given by the log; leave it out of the INSERT"
	CHECK (CASE WHEN current_setting('outbox.redact', true) = seq::text THEN true
		ELSE outbox_seq_is_from_the_log(seq) END) NOT VALID; -- which fails in a session that has published nothing

-- And whoever sets that by hand can make nothing but a tombstone.
CREATE TRIGGER outbox_message_tombstone BEFORE UPDATE ON outbox_message
FOR EACH ROW EXECUTE FUNCTION outbox_message_tombstone();
