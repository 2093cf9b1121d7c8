-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: the least rights for a role that publishes, a role that relays, and a role that consumes with an
-- inbox. Not part of the schema: run it as the owner of the outbox after `outbox init`, again after each upgrade, and for
-- each pair of roles:
--
--     psql -v schema=public -v publisher=shop -v relay=shop_relay -f roles.sql shop
--
-- and for an inbox, after `outbox init --inbox`, in a database with or without an outbox:
--
--     psql -v schema=public -v consumer=billing -f roles.sql billing
--
-- The roles must exist. What is not named is left out, a publisher and a relay together.

\set ON_ERROR_STOP on
BEGIN;
SELECT set_config('search_path', quote_ident(:'schema'), true) AS here \gset

\if :{?consumer}
-- The consumer can accept messages, and see what was accepted. It cannot forget any.
GRANT USAGE ON SCHEMA :"schema" TO :"consumer";
GRANT INSERT, SELECT ON outbox_inbox TO :"consumer";
GRANT EXECUTE ON FUNCTION outbox_inbox_accept(text, text) TO :"consumer";
\endif

\if :{?publisher}
-- The publisher can insert a message and get its id and seq back, or call outbox_publish(). It cannot read a
-- payload, change or remove a message, choose its place in the log, or see any other table. With outbox_cancel() it can
-- cancel a scheduled message whose id it knows.
GRANT USAGE ON SCHEMA :"schema" TO :"publisher";
GRANT INSERT (id, type, key, kind, published, priority, created_at, event_time, due_at, expires_at, content_type,
		source, subject, topic, correlation_id, causation_id, traceparent, headers, payload, payload_bin),
	SELECT (id, seq)
	ON outbox_message TO :"publisher";
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, :'publisher')
	FROM pg_proc p WHERE p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = :'schema')
		AND p.proname IN ('outbox_publish', 'outbox_publish_batch', 'outbox_cancel') \gexec

-- The relay and its operators can use everything of the outbox and nothing else. They can write messages only with
-- outbox_publish() and change them only with outbox_amend() and outbox_redact(), which keep the audit; the relay removes
-- them when they are old.
GRANT USAGE ON SCHEMA :"schema" TO :"relay";
SELECT format('GRANT %s ON %s TO %I',
		CASE WHEN c.relkind <> 'S' AND (starts_with(c.relname, 'outbox_message') OR c.relname IN ('outbox_kept', 'outbox_inbox')) THEN 'SELECT, DELETE'
			WHEN c.relkind = 'v' THEN 'SELECT'
			WHEN c.relkind = 'S' THEN 'SELECT, USAGE'
			ELSE 'SELECT, INSERT, UPDATE, DELETE' END,
		CASE WHEN c.relkind = 'S' THEN 'SEQUENCE ' ELSE '' END || c.oid::regclass, :'relay')
	FROM pg_class c JOIN pg_class log ON log.oid = 'outbox_message'::regclass
	WHERE c.relnamespace = log.relnamespace AND c.relowner = log.relowner AND starts_with(c.relname, 'outbox_')
		AND c.relkind IN ('r', 'p', 'v', 'S') AND c.relname NOT IN ('outbox_message_seq_seq', 'outbox_amended') \gexec
-- what an earlier version, or an upgrade, gave it (a schema that waits for its upgrade may not have the table yet)
SELECT format('REVOKE %s ON %s FROM %I', r.rights, c.oid::regclass, :'relay')
	FROM (VALUES ('outbox_kept', 'INSERT, UPDATE'), ('outbox_amended', 'ALL')) r(name, rights)
	JOIN pg_class c ON c.oid = to_regclass(r.name) WHERE c.relowner <> (SELECT oid FROM pg_roles WHERE rolname = :'relay') \gexec
GRANT SELECT ON SEQUENCE outbox_message_seq_seq TO :"relay";
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, :'relay')
	FROM pg_proc p JOIN pg_class log ON log.oid = 'outbox_message'::regclass
	WHERE p.pronamespace = log.relnamespace AND p.proowner = log.relowner AND starts_with(p.proname, 'outbox_')
		AND p.proname <> 'outbox_inbox_accept' \gexec
\endif
COMMIT;
