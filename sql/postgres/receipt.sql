-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: a lane's lock and its receipts.
--
-- Every op of a relay or an operator is one call of one function, so one transaction and one round trip,
-- also behind a pooler. now is NULL except in tests: then the time is the database's, taken when the locks
-- are held. Errors of class OB are for the program: OB001 not found, OB002 conflict, OB003 not valid,
-- OB004 inconsistent data, OB005 fenced, OB006 configuration.

CREATE OR REPLACE FUNCTION outbox_now(now timestamptz) RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$ SELECT coalesce(now, clock_timestamp()) $$;

CREATE OR REPLACE FUNCTION outbox_no_target(target text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'no target "%" is registered here', target USING ERRCODE = 'OB001';
END $$;

-- A lane is locked for the short transactions that settle, claim or act on it: by its row in outbox_lock, which is
-- created if it is missing. With the owner's rights: nobody else needs rights on that table, and publishers have none.
CREATE OR REPLACE FUNCTION outbox_lock_lane(p_target text, p_lane integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	LOOP
		PERFORM FROM outbox_lock l WHERE l.target = p_target AND l.lane = p_lane FOR UPDATE;
		EXIT WHEN FOUND;
		INSERT INTO outbox_lock (target, lane) VALUES (p_target, p_lane) ON CONFLICT DO NOTHING;
	END LOOP;
END $$;

-- False: it is locked by somebody else.
CREATE OR REPLACE FUNCTION outbox_try_lock_lane(p_target text, p_lane integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	INSERT INTO outbox_lock (target, lane) SELECT p_target, p_lane
		WHERE NOT EXISTS (SELECT FROM outbox_lock l WHERE l.target = p_target AND l.lane = p_lane) ON CONFLICT DO NOTHING;
	PERFORM FROM outbox_lock l WHERE l.target = p_target AND l.lane = p_lane FOR UPDATE SKIP LOCKED;
	RETURN FOUND;
END $$;

-- This transaction is on disk before its result is returned, whatever the settings of the role or the database are: a
-- message that was sent, or an operator's action that was confirmed, must not vanish when the server crashes.
CREATE OR REPLACE FUNCTION outbox_commit_durably() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('synchronous_commit') = 'off' THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END $$;

-- The last receipt of a lane. p_known: the number of one that is surely there. With it the index gives only what is behind,
-- not every receipt on the same page.
CREATE OR REPLACE FUNCTION outbox_last_receipt(p_target text, p_lane integer, p_known bigint) RETURNS outbox_receipt
LANGUAGE plpgsql STABLE AS $$
DECLARE
	last outbox_receipt;
BEGIN
	SELECT * INTO last FROM outbox_receipt WHERE target = p_target AND lane = p_lane AND n >= p_known
		ORDER BY n DESC LIMIT 1;
	IF NOT FOUND THEN
		RETURN outbox_last_receipt(p_target, p_lane);
	END IF;
	RETURN last;
END $$;

CREATE OR REPLACE FUNCTION outbox_last_receipt(p_target text, p_lane integer) RETURNS outbox_receipt
LANGUAGE plpgsql STABLE AS $$
DECLARE
	last outbox_receipt;
BEGIN
	SELECT * INTO last FROM outbox_receipt WHERE target = p_target AND lane = p_lane
		ORDER BY n DESC LIMIT 1;
	IF NOT FOUND THEN
		IF NOT EXISTS (SELECT FROM outbox_target WHERE name = p_target) THEN
			PERFORM outbox_no_target(p_target);
		END IF;
		RAISE EXCEPTION 'target % has no lane %', p_target, p_lane USING ERRCODE = 'OB001';
	END IF;
	RETURN last;
END $$;

CREATE OR REPLACE FUNCTION outbox_is_cautious(p outbox_receipt) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
	SELECT (p).caution_left > 0 OR (p).pos < (p).caution_end
$$;

-- What the next receipt starts from: same position, nothing in flight, nothing settled.
CREATE OR REPLACE FUNCTION outbox_next_receipt(p outbox_receipt, token bigint, owner text, now timestamptz) RETURNS outbox_receipt
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	p.n := p.n + 1;
	p.token := outbox_next_receipt.token;
	p.owner := outbox_next_receipt.owner;
	p.settled_at := now;
	p.settled_to := 0;
	p.claim_end := p.pos;
	p.claim_seq := 0;
	p.claim_last := 0;
	p.claim_count := 0;
	p.claim_detours := 0;
	p.suspect_seq := 0;
	p.takeovers := 0;
	p.delivered := 0;
	p.retried := 0;
	p.failed := 0;
	p.parked := 0;
	p.deferred := 0;
	RETURN p;
END $$;

-- A duplicate key here means that another relay has the lane: fenced.
CREATE OR REPLACE FUNCTION outbox_append_receipt(p outbox_receipt) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_current_xact_id(); -- before the number: outbox_tail relies on it
	p.number := nextval('outbox_receipt_number_seq');
	INSERT INTO outbox_receipt OVERRIDING SYSTEM VALUE SELECT p.*;
END $$;
