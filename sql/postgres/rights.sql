-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: who may call new functions. Only the owner, until roles.sql or the like grants more, and roles
-- that may call outbox_advance(): relays with a role of their own go on working after an upgrade. Roles that may call
-- outbox_publish() may call outbox_cancel(). What was there before keeps its rights.
--
-- The exceptions run for every INSERT with the publisher's rights: the slot and the default id.
-- Neither of them reveals or changes anything.

DO $do$
DECLARE
	here oid := to_regnamespace(quote_ident(current_schema()));
	known oid[] := current_setting('outbox.known')::oid[];
	taken text;
	f regprocedure;
	fresh regclass;
	role oid;
BEGIN
	-- only what this transaction has created or replaced: an application's own outbox_something is not ours to change
	SELECT o.name INTO taken FROM (
		SELECT p.oid, p.xmin, p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = here
		UNION ALL
		SELECT c.oid, c.xmin, c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = here AND c.relkind = 'v'
		) o(oid, made, name)
		WHERE o.oid = ANY (known) AND age(o.made) <= age(pg_current_xact_id()::xid) ORDER BY o.name LIMIT 1;
	IF FOUND AND current_setting('outbox.first')::boolean THEN
		RAISE EXCEPTION 'a function or view % that is not ours is in the way; rename it and run outbox init again', taken
			USING ERRCODE = 'OB002';
	END IF;
	-- new tables: for roles that may write receipts; old payloads are for functions that run with the owner's rights alone
	FOR fresh IN SELECT oid FROM pg_class WHERE relnamespace = here AND relkind = 'r' AND NOT relispartition
			AND oid <> ALL (known) AND starts_with(relname, 'outbox_') AND relname <> 'outbox_amended'
			AND age(xmin) <= age(pg_current_xact_id()::xid) LOOP
		FOR role IN SELECT DISTINCT a.grantee FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
				WHERE c.relname = 'outbox_receipt' AND c.relnamespace = here
					AND a.privilege_type = 'INSERT' AND a.grantee NOT IN (0, c.relowner) LOOP
			EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s TO %s', fresh, role::regrole);
		END LOOP;
	END LOOP;
	-- the name, too: somebody may have created others meanwhile
	FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = here AND oid <> ALL (known) AND starts_with(proname, 'outbox_')
			AND age(xmin) <= age(pg_current_xact_id()::xid)
			AND proname NOT IN ('outbox_slot', 'outbox_uuid') LOOP
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
		FOR role IN SELECT DISTINCT a.grantee FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
				WHERE p.proname IN ('outbox_advance', CASE WHEN f::text ~ 'outbox_cancel[(]' THEN 'outbox_publish' END)
					AND p.pronamespace = here
					AND a.privilege_type = 'EXECUTE' AND a.grantee NOT IN (0, p.proowner) LOOP
			EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', f, role::regrole);
		END LOOP;
	END LOOP;
END $do$;
