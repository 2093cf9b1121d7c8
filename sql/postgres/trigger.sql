-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: what triggers of other tables than the log call. Created before the tables, like message.sql.

-- For detours that were removed: their history goes with them (attempt.sql).
CREATE OR REPLACE FUNCTION outbox_forget_attempts() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
	DELETE FROM outbox_attempt a WHERE a.ctid = ANY (ARRAY(
		SELECT x.place FROM gone g CROSS JOIN LATERAL (
			SELECT o.ctid AS place FROM outbox_attempt o
			WHERE (o.target, o.seq) >= (g.target, g.seq) AND (o.target, o.seq) <= (g.target, g.seq)) x));
	RETURN NULL;
END $$;

-- A transaction that cancels a message commits (cancel.sql).
CREATE OR REPLACE FUNCTION outbox_cancelled_commit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	PERFORM outbox_cancel_commit(NEW.id, NEW.actor, NEW.reason);
	RETURN NULL;
END $$;
