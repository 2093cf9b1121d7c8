-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: how an upgrade begins. Others lock views, tables and the log in any order, so no order of locks
-- avoids every deadlock. So the upgrade takes all its locks at once and gives way before the server looks for deadlocks
-- (after a second): others that would deadlock with it wait for a moment and go on, and no queue forms behind it. Not
-- outbox_detoured, which functions read after their tables.

DO $outbox$
DECLARE
	name text;
BEGIN
	FOR tries IN REVERSE 50 .. 1 LOOP
		BEGIN
			PERFORM set_config('lock_timeout', '200ms', true);
			FOREACH name IN ARRAY ARRAY['outbox_backlog', 'outbox_delivery', 'outbox_failed', 'outbox_unread',
				'outbox_position'] LOOP -- this changes nothing but locks the view
				EXECUTE format('ALTER VIEW IF EXISTS %I ALTER COLUMN target DROP DEFAULT', name);
			END LOOP;
			LOCK TABLE outbox_target, outbox_detour, outbox_message, outbox_route IN ACCESS EXCLUSIVE MODE;
			EXIT;
		EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
			IF tries = 1 THEN
				RAISE EXCEPTION 'another transaction has used the outbox for more than 15 seconds; nothing was changed: end that transaction (xact_start in pg_stat_activity), then run outbox upgrade again'
					USING ERRCODE = 'lock_not_available';
			END IF;
			PERFORM pg_sleep(0.1);
		END;
	END LOOP;
END $outbox$;
SET LOCAL lock_timeout = '5s';
