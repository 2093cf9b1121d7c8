-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: dead letters.
--
-- What fails at a target with a dead letter target becomes pending there in the same transaction. A message is in
-- the same lane of every target. Locks: a lane of a target before the same lane of its dead letter target; chains
-- have no loops, and who makes dead letters settles one lane in its transaction, so there is no deadlock.
--
-- The message may be in flight there at the same time, as a detour or straight from the log: then it must be sent
-- again when that is settled. dead_n says in which claim that was; claims are numbered, so it is unambiguous.

-- How many dead letter targets follow a target: to lock several targets, lock those with the most first.
CREATE OR REPLACE FUNCTION outbox_dead_depth(p_target text) RETURNS integer
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	WITH RECURSIVE chain(name, depth) AS (
		SELECT p_target, 0
		UNION ALL
		SELECT t.dead_letter, c.depth + 1 FROM chain c JOIN outbox_target t ON t.name = c.name
		WHERE t.dead_letter IS NOT NULL AND c.depth < 1000)
	SELECT max(depth) FROM chain
$$;

-- For deliveries that have just failed; the lane is locked.
CREATE OR REPLACE FUNCTION outbox_dead_letters(last outbox_receipt, p_seqs bigint[], p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	d outbox_target;
	there outbox_receipt;
	keys text[];
BEGIN
	SELECT o.* INTO d FROM outbox_target t JOIN outbox_target o ON o.name = t.dead_letter WHERE t.name = last.target;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	PERFORM outbox_lock_lane(d.name, last.lane);
	there := outbox_last_receipt(d.name, last.lane);
	WITH sent AS (
		INSERT INTO outbox_detour AS o (target, seq, id, key, lane, state, why, next_attempt_at, last_status_at, ahead,
			dead_target, dead_reason, dead_attempts, dead_at, dead_n, ready_at)
		SELECT d.name, f.seq, f.id, f.key, f.lane, 'pending', 'retry', p_now, p_now,
			m.seq IS NOT NULL AND NOT outbox_is_settled(m.xid, m.seq, there),
			f.target, f.last_error, f.attempts, p_now, CASE WHEN there.claim_count > 0 THEN there.n END, p_now
		FROM outbox_detour f LEFT JOIN outbox_message m ON m.seq = f.seq
		WHERE f.target = last.target AND f.seq = ANY (p_seqs)
		ON CONFLICT (target, seq) DO UPDATE SET
			dead_target = excluded.dead_target, dead_reason = excluded.dead_reason,
			dead_attempts = excluded.dead_attempts, dead_at = excluded.dead_at,
			dead_n = CASE o.state WHEN 'pending' THEN o.dead_n WHEN 'sending' THEN excluded.dead_n END,
			state = CASE WHEN o.state = 'sending' THEN o.state ELSE 'pending' END,
			why = CASE WHEN o.state IN ('pending', 'sending') THEN o.why ELSE 'retry' END,
			next_attempt_at = CASE WHEN o.state IN ('pending', 'sending') THEN o.next_attempt_at ELSE p_now END,
			ready_at = CASE WHEN o.state IN ('pending', 'sending') THEN o.ready_at ELSE p_now END,
			attempts = CASE WHEN o.state IN ('pending', 'sending') THEN o.attempts ELSE 0 END,
			failing_since = CASE WHEN o.state IN ('pending', 'sending') THEN o.failing_since END,
			last_error = CASE WHEN o.state IN ('pending', 'sending') THEN o.last_error END,
			last_status_at = p_now, reason = NULL, n = CASE WHEN o.state IN ('pending', 'sending') THEN o.n END
		RETURNING o.key)
	SELECT array_agg(s.key) INTO keys FROM sent s;
	PERFORM outbox_promote(d.name, keys, d.hold, p_now);
END $$;

-- Where these failed before, in seq order.
CREATE OR REPLACE FUNCTION outbox_dead(p_target text, p_seqs bigint[])
RETURNS TABLE (seq bigint, dead_target text, dead_reason text, dead_attempts integer, dead_at timestamptz)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT d.seq, d.dead_target, d.dead_reason, d.dead_attempts, d.dead_at FROM outbox_detour d
	WHERE d.target = p_target AND d.seq = ANY (p_seqs) AND d.dead_target IS NOT NULL ORDER BY d.seq
$$;

-- Set the dead letter target of a registered target; NULL: none. The lanes are locked if there is something to do.
CREATE OR REPLACE FUNCTION outbox_target_dead(p_target text, p_dead text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	link text := p_dead;
	steps text := p_target;
BEGIN
	IF NOT EXISTS (SELECT FROM outbox_target WHERE name = p_target AND dead_letter IS DISTINCT FROM p_dead) THEN
		RETURN;
	END IF;
	-- one at a time: two callers could each make one half of a loop
	PERFORM outbox_lock_lane('dead letters', -3);
	WHILE link IS NOT NULL LOOP
		steps := steps || ' -> ' || link;
		IF link = p_target THEN
			RAISE EXCEPTION 'dead_letter: % is a loop; a dead letter must end somewhere', steps USING ERRCODE = 'OB006';
		ELSIF NOT EXISTS (SELECT FROM outbox_target WHERE name = link) THEN
			RAISE EXCEPTION 'dead_letter: no target "%" is registered here; register it first', link USING ERRCODE = 'OB006';
		END IF;
		SELECT dead_letter INTO link FROM outbox_target WHERE name = link;
	END LOOP;
	PERFORM outbox_lock_lanes(p_target);
	UPDATE outbox_target SET dead_letter = p_dead WHERE name = p_target;
END $$;
