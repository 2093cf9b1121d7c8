-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: how an upgrade begins. Others lock views, tables and the log in every order: no order of ours
-- suits them all. So it takes all its locks at once and gives way, sooner than the server looks for deadlocks (after a
-- second): who would wait for it in a circle waits a moment and goes on, and what somebody uses has no queue of everybody
-- else behind us. Not outbox_detoured, which functions read behind their tables.

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
				RAISE EXCEPTION 'somebody uses the outbox for longer than 15 seconds; nothing was changed: end that transaction (xact_start in pg_stat_activity), then run outbox upgrade again'
					USING ERRCODE = 'lock_not_available';
			END IF;
			PERFORM pg_sleep(0.1);
		END;
	END LOOP;
END $outbox$;
SET LOCAL lock_timeout = '5s';
