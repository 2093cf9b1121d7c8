-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: who has a lane, and what its last receipt says.
--
-- Every op of a relay or an operator is one call of one function, so one transaction and one round trip,
-- also behind a pooler. now is NULL outside tests: then the time is the database's, taken when its locks
-- are held. Errors of class OB are for the program: OB001 not found, OB002 conflict, OB003 not valid,
-- OB004 the data do not belong together, OB005 fenced, OB006 configuration.

CREATE OR REPLACE FUNCTION outbox_now(now timestamptz) RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$ SELECT coalesce(now, clock_timestamp()) $$;

-- A lane is locked for the short transactions that settle, claim or act on it: by its row of outbox_lock, which is made
-- when it is not there. With the owner's rights: nobody else needs any on that table, and who only publishes has none.
CREATE OR REPLACE FUNCTION outbox_lock_lane(p_target text, p_lane integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	LOOP
		PERFORM FROM outbox_lock l WHERE l.target = p_target AND l.lane = p_lane FOR UPDATE;
		EXIT WHEN FOUND;
		INSERT INTO outbox_lock (target, lane) VALUES (p_target, p_lane) ON CONFLICT DO NOTHING;
	END LOOP;
END $$;

-- False: somebody has it.
CREATE OR REPLACE FUNCTION outbox_try_lock_lane(p_target text, p_lane integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	INSERT INTO outbox_lock (target, lane) SELECT p_target, p_lane
		WHERE NOT EXISTS (SELECT FROM outbox_lock l WHERE l.target = p_target AND l.lane = p_lane) ON CONFLICT DO NOTHING;
	PERFORM FROM outbox_lock l WHERE l.target = p_target AND l.lane = p_lane FOR UPDATE SKIP LOCKED;
	RETURN FOUND;
END $$;

-- What this transaction says is on the disk before anybody is told, whatever the role or the database like better: a
-- message that was sent must not vanish with a crash of the server, nor an operator's act that was confirmed.
CREATE OR REPLACE FUNCTION outbox_commit_durably() RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('synchronous_commit') = 'off' THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END $$;

CREATE OR REPLACE FUNCTION outbox_no_target(target text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'no target "%" is registered here', target USING ERRCODE = 'OB001';
END $$;

-- The last receipt of a lane.
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

-- A position that lies ahead of the database belongs to another history: a restored dump, a reset sequence.
CREATE OR REPLACE FUNCTION outbox_check_position(p outbox_receipt, log_end bigint, now_at pg_snapshot) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF p.cur_seq > log_end THEN
		RAISE EXCEPTION 'target %, lane % stands at message %, but the log ends at %: the log was restored, truncated or its sequence reset; run: outbox rebase',
			p.target, p.lane, p.cur_seq, log_end USING ERRCODE = 'OB004';
	ELSIF p.cur_xid >= pg_snapshot_xmax(now_at) THEN
		RAISE EXCEPTION 'target %, lane % stands at transaction %, but this database is at %: it comes from another server (restored, copied or upgraded); run: outbox rebase',
			p.target, p.lane, p.cur_xid, pg_snapshot_xmax(now_at) USING ERRCODE = 'OB004';
	END IF;
END $$;

-- At take(), when it costs nothing: were these receipts written by this server, on this log?
CREATE OR REPLACE FUNCTION outbox_check_history(p outbox_receipt) RETURNS void
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	known text := (SELECT value FROM outbox_meta WHERE name = 'cluster');
BEGIN
	IF known <> outbox_cluster() THEN
		RAISE EXCEPTION 'target %, lane %: its receipts were written on another server (% here, % then), whose transaction numbers mean nothing here; run: outbox rebase',
			p.target, p.lane, outbox_cluster(), known USING ERRCODE = 'OB004';
	END IF;
	PERFORM FROM (SELECT xid FROM outbox_message WHERE seq <= p.prev_seq AND seq > p.floor ORDER BY seq DESC LIMIT 100) m
		WHERE m.xid > p.prev_xid;
	IF FOUND THEN
		RAISE EXCEPTION 'target %, lane %: messages at or before % are younger than the position; the log''s sequence was reset; run: outbox rebase',
			p.target, p.lane, p.prev_seq USING ERRCODE = 'OB004';
	END IF;
END $$;

-- Which server this is, as far as one may know it.
CREATE OR REPLACE FUNCTION outbox_cluster() RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT system_identifier::text FROM pg_control_system());
EXCEPTION WHEN insufficient_privilege THEN
	RETURN NULL;
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

-- A duplicate key here means that somebody else has the lane: fenced.
CREATE OR REPLACE FUNCTION outbox_append_receipt(p outbox_receipt) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_current_xact_id(); -- before the number: outbox_tail relies on it
	p.number := nextval('outbox_receipt_number_seq');
	INSERT INTO outbox_receipt OVERRIDING SYSTEM VALUE SELECT p.*;
END $$;

-- One round of lease keeping. lanes: those held now.
CREATE OR REPLACE FUNCTION outbox_lease(p_target text, p_owner text, p_duration bigint, p_version bigint, p_leaving boolean,
	p_outage text, p_outage_age bigint, p_now timestamptz,
	OUT total integer, OUT share integer, OUT stale_route boolean, OUT lanes integer[])
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET lock_timeout = '10s' AS $$
DECLARE
	t timestamptz;
	until timestamptz;
	found_version bigint;
	workers integer;
	rank integer;
BEGIN
	PERFORM outbox_lock_lane(p_target, -1);
	t := outbox_now(p_now);
	until := t + p_duration * interval '1 microsecond';
	SELECT version INTO found_version FROM outbox_target WHERE name = p_target;
	IF NOT FOUND THEN
		PERFORM outbox_no_target(p_target);
	END IF;
	stale_route := found_version <> p_version;
	share := 0;
	lanes := '{}';
	DELETE FROM outbox_worker WHERE target = p_target AND alive_until <= t;
	IF p_leaving OR stale_route THEN
		DELETE FROM outbox_worker WHERE target = p_target AND owner = p_owner;
	ELSE
		INSERT INTO outbox_worker AS w (target, owner, alive_until, outage, outage_since)
		VALUES (p_target, p_owner, until, p_outage,
			CASE WHEN p_outage IS NOT NULL THEN t - p_outage_age * interval '1 microsecond' END)
		ON CONFLICT (target, owner) DO UPDATE SET alive_until = excluded.alive_until,
			outage = excluded.outage, outage_since = excluded.outage_since;
	END IF;
	SELECT count(*) INTO total FROM outbox_lane WHERE target = p_target;
	IF stale_route THEN
		RETURN;
	END IF;
	IF NOT p_leaving THEN
		SELECT count(*), count(*) FILTER (WHERE owner COLLATE "C" < p_owner) INTO workers, rank
			FROM outbox_worker WHERE target = p_target;
		share := total / workers + (rank < total % workers)::integer;
	END IF;
	SELECT coalesce(array_agg(lane), '{}') INTO lanes FROM outbox_lane
		WHERE target = p_target AND owner = p_owner;
	lanes := lanes || ARRAY(SELECT lane FROM outbox_lane
		WHERE target = p_target AND (owner IS NULL OR (owner <> p_owner AND lease_until <= t))
		ORDER BY lane LIMIT greatest(share - cardinality(lanes), 0));
	UPDATE outbox_lane SET owner = p_owner, lease_until = until
		WHERE target = p_target AND lane = ANY (lanes);
	lanes := ARRAY(SELECT unnest(lanes) ORDER BY 1);
END $$;

CREATE OR REPLACE FUNCTION outbox_release(p_target text, p_lane integer, p_owner text) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	UPDATE outbox_lane SET owner = NULL, lease_until = '-infinity'
	WHERE target = p_target AND lane = p_lane AND owner = p_owner
$$;

-- Append a take-over receipt: fences the owner, what was in flight is pending again. The lane is locked.
-- The first owner that dies with messages in flight is taken as bad luck; from the second on, nothing
-- settled in between, the lane is cautious: one message at a time until all that was in flight is settled.
-- Whoever dies in that mode leaves exactly one message in flight: the suspect.
CREATE OR REPLACE FUNCTION outbox_take_over(last outbox_receipt, p_owner text, p_token bigint, p_now timestamptz) RETURNS outbox_receipt
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	succ outbox_receipt := outbox_next_receipt(last, p_token, p_owner, p_now);
BEGIN
	PERFORM outbox_check_position(last, outbox_log_end(), pg_current_snapshot());
	PERFORM outbox_check_history(last);
	IF last.claim_count > 0 THEN
		succ.takeovers := last.takeovers + 1;
		IF succ.takeovers >= 2 THEN
			succ.caution_left := greatest(last.caution_left, last.claim_count);
			IF last.claim_count > last.claim_detours THEN
				succ.caution_end := greatest(last.caution_end, last.claim_last);
			END IF;
		END IF;
		IF last.claim_count = 1 AND (outbox_is_cautious(last) OR EXISTS (SELECT FROM outbox_detour
				WHERE target = last.target AND seq = last.claim_seq AND suspect)) THEN
			succ.suspect_seq := last.claim_seq;
		END IF;
		UPDATE outbox_detour SET state = 'pending', why = 'retry', next_attempt_at = p_now, last_status_at = p_now
			WHERE target = last.target AND lane = last.lane AND state = 'sending';
		UPDATE outbox_lane SET takeovers = takeovers + 1 WHERE target = last.target AND lane = last.lane;
	END IF;
	PERFORM outbox_append_receipt(succ);
	RETURN succ;
END $$;

-- Begin to work on a lane.
CREATE OR REPLACE FUNCTION outbox_take(p_target text, p_lane integer, p_owner text, p_token bigint, p_now timestamptz,
	OUT n bigint, OUT token bigint, OUT takeovers integer, OUT cautious boolean, OUT suspect_seq bigint,
	OUT in_flight bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET lock_timeout = '10s' AS $$
DECLARE
	last outbox_receipt;
	succ outbox_receipt;
BEGIN
	PERFORM outbox_lock_lane(p_target, p_lane);
	last := outbox_last_receipt(p_target, p_lane);
	in_flight := 0;
	IF last.token = p_token THEN
		succ := last; -- the very same request, done before
	ELSE
		in_flight := last.claim_count;
		succ := outbox_take_over(last, p_owner, p_token, outbox_now(p_now));
	END IF;
	n := succ.n;
	token := succ.token;
	takeovers := succ.takeovers;
	cautious := outbox_is_cautious(succ);
	suspect_seq := succ.suspect_seq;
END $$;
