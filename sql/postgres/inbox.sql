-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: the inbox, with which a consumer processes each message once. It is not part of the outbox's schema
-- and has no version of it: it is made by `outbox init --inbox` in the consumer's own database, with or without an outbox.
-- Run again it changes no table and makes the function as it is now.

DO $outbox$
BEGIN
	PERFORM set_config('outbox.inbox_is_new', (to_regclass('outbox_inbox') IS NULL)::text, true);
	-- an application's own table of this name is not ours to use
	IF to_regclass('outbox_inbox') IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_index i
			WHERE i.indrelid = to_regclass('outbox_inbox') AND i.indisprimary
				AND pg_get_indexdef(i.indexrelid, 1, true) = 'consumer' AND pg_get_indexdef(i.indexrelid, 2, true) = 'id')
	THEN
		RAISE EXCEPTION 'a table or view outbox_inbox that is not ours is in the way; rename it and run outbox init --inbox again'
			USING ERRCODE = 'OB002';
	END IF;
END $outbox$;

-- What each consumer has accepted. COLLATE "C": the key is compared by bytes, and no upgrade of the system's locales can make
-- its index forget a row.
CREATE TABLE IF NOT EXISTS outbox_inbox (
	consumer text COLLATE "C" NOT NULL
		CONSTRAINT "consumer is text of 1 to 255 characters" CHECK (length(consumer) BETWEEN 1 AND 255),
	id text COLLATE "C" NOT NULL -- the message's
		CONSTRAINT "id is text of 1 to 255 characters" CHECK (length(id) BETWEEN 1 AND 255),
	received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (consumer, id)
);
CREATE INDEX IF NOT EXISTS outbox_inbox_received ON outbox_inbox (received_at);

-- In the consumer's own transaction, before its work: true the first time, false for a repeat. If another transaction has
-- just accepted the same id, this waits until that one ends: false when it commits, true when it rolls back.
CREATE OR REPLACE FUNCTION outbox_inbox_accept(p_consumer text, p_id text) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	INSERT INTO outbox_inbox (consumer, id) VALUES (p_consumer, p_id) ON CONFLICT (consumer, id) DO NOTHING;
	RETURN FOUND;
END $$;

-- A new one: nobody but its owner, until roles.sql grants more; and relays that are here, which remove what is old.
DO $outbox$
DECLARE
	role oid;
BEGIN
	IF current_setting('outbox.inbox_is_new')::boolean THEN
		REVOKE ALL ON FUNCTION outbox_inbox_accept(text, text) FROM PUBLIC;
		FOR role IN SELECT DISTINCT a.grantee FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
				WHERE c.oid = to_regclass('outbox_receipt') AND a.privilege_type = 'INSERT' AND a.grantee NOT IN (0, c.relowner) LOOP
			EXECUTE format('GRANT SELECT, DELETE ON TABLE outbox_inbox TO %s', role::regrole);
		END LOOP;
	END IF;
END $outbox$;
