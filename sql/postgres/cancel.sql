-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: cancelling a message before it is due.
--
-- The call is part of the application's transaction, which may stay open for long, and a lane must not be locked for so
-- long. So the call only looks and leaves a row in outbox_cancelled, and a deferred trigger does the work when the
-- transaction commits: it locks the message's lane at every target, looks once more, and discards the deliveries. If the
-- message has become due meanwhile or is being read, the commit fails, and everything else in the transaction with it.
--
-- The row stays as long as the message: a target that is registered later, or gets another routing, does not send the
-- message either (outbox_cancel_for()). Registering waits for transactions that are cancelling.

-- The message with this id, whichever table it is in.
CREATE OR REPLACE FUNCTION outbox_cancel_look(p_id text, OUT seq bigint, OUT slot smallint, OUT due_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	found bigint;
BEGIN
	SELECT min(m.seq), count(*) INTO seq, found
		FROM (SELECT l.seq FROM outbox_message l WHERE l.id = p_id UNION SELECT k.seq FROM outbox_kept k WHERE k.id = p_id) m;
	IF found = 0 THEN
		RAISE EXCEPTION 'no message with the id "%"', left(p_id, 255) USING ERRCODE = 'OB001';
	ELSIF found > 1 THEN
		RAISE EXCEPTION 'several messages have this id, so it does not identify one of them' USING ERRCODE = 'OB002';
	END IF;
	SELECT m.slot, m.due_at INTO slot, due_at FROM (
		SELECT l.slot, l.due_at FROM outbox_message l WHERE l.seq = outbox_cancel_look.seq
		UNION ALL SELECT k.slot, k.due_at FROM outbox_kept k WHERE k.seq = outbox_cancel_look.seq LIMIT 1) m;
END $$;

-- Is this delivery still to come? An error if it was made, was tried, or its time has come.
CREATE OR REPLACE FUNCTION outbox_cancel_judge(d outbox_detour, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
	IF d.state IS NULL OR d.state = 'discarded' THEN
		RETURN false;
	ELSIF d.state = 'sending' THEN
		RAISE EXCEPTION 'it is being sent to % right now; try again', d.target USING ERRCODE = 'OB002';
	ELSIF d.state <> 'pending' THEN
		RAISE EXCEPTION 'its delivery to % is %; only a message that was sent nowhere can be cancelled', d.target, d.state
			USING ERRCODE = 'OB002';
	ELSIF d.why NOT IN ('new', 'paused') AND NOT (d.why = 'deferred' AND d.next_attempt_at > p_now) THEN
		RAISE EXCEPTION 'it is due at % already; outbox discard stops what is not sent yet', d.target USING ERRCODE = 'OB002';
	END IF;
	RETURN true;
END $$;

-- The targets at which it must be discarded. p_fence: their lanes are locked, and an owner that is dead is fenced.
CREATE OR REPLACE FUNCTION outbox_cancel_targets(p_seq bigint, p_due timestamptz, p_lane integer, p_now timestamptz, p_fence boolean)
RETURNS text[]
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	wanted text[] := '{}';
	look record;
	t record;
BEGIN
	IF p_due IS NULL THEN
		RAISE EXCEPTION 'it is not scheduled: only a message with a due_at in the future can be cancelled; outbox discard stops what is not sent yet'
			USING ERRCODE = 'OB002';
	ELSIF p_due <= p_now THEN
		RAISE EXCEPTION 'it was due at %: only a message that is due later can be cancelled; outbox discard stops what is not sent yet',
			to_char(p_due AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') USING ERRCODE = 'OB002';
	END IF;
	FOR t IN SELECT o.name FROM outbox_target o ORDER BY o.name LOOP
		look := outbox_act_look(t.name, p_seq, p_lane);
		IF (look.d).state = 'sending' AND NOT outbox_lane_is_leased(t.name, p_lane, p_now) THEN
			IF p_fence THEN
				PERFORM outbox_fence_owner(t.name, p_lane, 'cancel',
					('x' || left(replace(gen_random_uuid()::text, '-', ''), 15))::bit(60)::bigint, p_now);
				look := outbox_act_look(t.name, p_seq, p_lane);
			ELSE
				CONTINUE;
			END IF;
		END IF;
		IF outbox_cancel_judge(look.d, p_now) THEN
			wanted := wanted || t.name;
		END IF;
	END LOOP;
	RETURN wanted;
END $$;

-- The lanes of what this transaction cancels, noted with each call: they are locked together when it commits. One after
-- the other, in the order of the calls, two transactions could wait for each other.
CREATE OR REPLACE FUNCTION outbox_cancel_note(p_lane integer) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	lanes text := coalesce(current_setting('outbox.cancel_lanes', true), '');
BEGIN
	IF p_lane::text <> ALL (string_to_array(lanes, ' ')) THEN
		PERFORM set_config('outbox.cancel_lanes', lanes || ' ' || p_lane, true);
	END IF;
END $$;

-- Of all targets; in the order in which others lock several. Once a transaction, unless more was cancelled since.
CREATE OR REPLACE FUNCTION outbox_cancel_lock() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	lanes text := current_setting('outbox.cancel_lanes', true);
	l record;
BEGIN
	IF lanes = current_setting('outbox.cancel_locked', true) THEN
		RETURN;
	END IF;
	FOR l IN SELECT t.name, n.lane::integer AS lane FROM outbox_target t CROSS JOIN unnest(string_to_array(ltrim(lanes), ' ')) n(lane)
			ORDER BY outbox_dead_depth(t.name) DESC, t.name, n.lane::integer LOOP
		PERFORM outbox_lock_lane(l.name, l.lane);
	END LOOP;
	PERFORM set_config('outbox.cancel_locked', lanes, true);
END $$;

-- With the owner's rights: an application needs none but to call outbox_cancel(). False: it was cancelled before.
CREATE OR REPLACE FUNCTION outbox_cancel_as(p_id text, p_reason text, p_actor text, p_now timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	m record := outbox_cancel_look(p_id);
	now timestamptz := outbox_now(p_now);
	lane integer := m.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		-- an older picture would not show that a relay has the message
		RAISE EXCEPTION 'outbox_cancel() needs a transaction that is READ COMMITTED, and this one is %',
			upper(current_setting('transaction_isolation')) USING ERRCODE = 'OB003';
	ELSIF EXISTS (SELECT FROM outbox_cancelled c WHERE c.seq = m.seq) THEN
		RETURN false;
	END IF;
	PERFORM outbox_cancel_targets(m.seq, m.due_at, lane, now, false);
	PERFORM outbox_cancel_note(lane);
	PERFORM set_config('outbox.cancel_now', coalesce(p_now::text, ''), true);
	INSERT INTO outbox_cancelled (seq, id, at, actor, reason) VALUES (m.seq, p_id, now, p_actor, coalesce(p_reason, 'cancelled'))
		ON CONFLICT DO NOTHING;
	RETURN FOUND;
END $$;

-- For applications: in their transaction, like outbox_publish().
CREATE OR REPLACE FUNCTION outbox_cancel(p_id text, p_reason text DEFAULT NULL) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
	SELECT outbox_cancel_as(p_id, p_reason, session_user::text, NULL)
$$;

-- At the end of the transaction.
CREATE OR REPLACE FUNCTION outbox_cancel_commit(p_id text, p_actor text, p_reason text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	m record := outbox_cancel_look(p_id);
	lane integer := m.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	o outbox_act_order;
	now timestamptz;
	look record;
	t record;
	wanted text[];
BEGIN
	PERFORM outbox_commit_durably();
	PERFORM outbox_cancel_note(lane); -- who resets a session's settings has forgotten it
	PERFORM outbox_cancel_lock();
	now := outbox_now(nullif(current_setting('outbox.cancel_now', true), '')::timestamptz);
	wanted := outbox_cancel_targets(m.seq, m.due_at, lane, now, true);
	o.action := 'discard';
	o.actor := p_actor;
	o.reason := p_reason;
	FOR t IN SELECT x.name, x.hold FROM outbox_target x WHERE x.name = ANY (wanted) ORDER BY x.name LOOP
		look := outbox_act_look(t.name, m.seq, lane);
		PERFORM outbox_change(look.d, look.has_row, look.ahead, o, t.hold, now);
	END LOOP;
	INSERT INTO outbox_audit (at, actor, action, id, seq, reason) VALUES (now, p_actor, 'cancel', p_id, m.seq, p_reason);
END $$;

-- A target is new, or has a new routing, and the janitor's lock is held: what was cancelled and would be its own now is
-- discarded there, too.
CREATE OR REPLACE FUNCTION outbox_cancel_for(p_target text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	LOCK TABLE outbox_cancelled IN SHARE MODE; -- who is cancelling does not know this target
	INSERT INTO outbox_detour (target, seq, id, key, lane, state, last_status_at, reason, ahead)
	SELECT t.name, m.seq, m.id, m.key, l.lane, 'discarded', p_now, c.reason, true
	FROM outbox_target t CROSS JOIN outbox_cancelled c JOIN outbox_message m ON m.seq = c.seq
	JOIN outbox_lane l ON l.target = t.name AND l.lane = m.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes')
	WHERE t.name = p_target AND (outbox_place(m, t, outbox_last_receipt(t.name, l.lane))).state = 'pending'
	ON CONFLICT DO NOTHING;
END $$;
