-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL, version 2: who may call what is new. Nobody but the owner, and whoever may call
-- outbox_advance(): relays with a role of their own go on working after an upgrade.

DO $do$
DECLARE
	f regprocedure;
	role oid;
BEGIN
	-- those made or made anew by this very transaction
	FOR f IN SELECT oid FROM pg_proc
		WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
			AND age(xmin) <= age(pg_current_xact_id()::xid)
			AND proname LIKE 'outbox\_%'
			AND proname NOT IN ('outbox_slot', 'outbox_uuid', 'outbox_seq_is_from_the_log')
	LOOP
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
		FOR role IN SELECT DISTINCT a.grantee FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
			WHERE p.proname = 'outbox_advance' AND a.privilege_type = 'EXECUTE' AND a.grantee NOT IN (0, p.proowner)
				AND p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
		LOOP
			EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', f, role::regrole);
		END LOOP;
	END LOOP;
END $do$;
