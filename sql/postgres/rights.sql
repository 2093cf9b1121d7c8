-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: who may call what. Nobody but the owner, until roles.sql or the like grants it.
--
-- The exceptions run for every INSERT with the publisher's rights: the slot, the default id, the check of seq.
-- None of them tells or changes anything.

DO $do$
DECLARE
	f regprocedure;
BEGIN
	-- those made by this very transaction: an application's own outbox_something is not ours to touch
	FOR f IN SELECT oid FROM pg_proc
		WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
			AND age(xmin) <= age(pg_current_xact_id()::xid)
			AND proname NOT IN ('outbox_slot', 'outbox_uuid', 'outbox_seq_is_from_the_log')
	LOOP
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
	END LOOP;
END $do$;
