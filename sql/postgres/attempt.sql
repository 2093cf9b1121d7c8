-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: the history of failed attempts. A row is written only where a try failed, in the transaction that
-- settles it and writes its detour. With the detour its history goes, by a trigger, whoever removes it.

-- Of each delivery the first one stays and the last ones, so many together.
CREATE OR REPLACE FUNCTION outbox_attempts_kept() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 20 $$;

-- n: the receipt that settled it. A call that is repeated because its answer was lost writes nothing: what is there stays,
-- and where the detour is gone nothing comes back.
CREATE OR REPLACE FUNCTION outbox_add_attempts(p_target text, p_seqs bigint[], p_ns bigint[], p_attempts integer[], p_verdicts text[],
	p_natives integer[], p_reasons text[], p_answers text[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
	INSERT INTO outbox_attempt (target, seq, n, at, attempt, verdict, native, reason, answer)
	SELECT p_target, u.seq, u.n, d.last_status_at, u.attempt, u.verdict, u.native, u.reason, u.answer
	FROM unnest(p_seqs, p_ns, p_attempts, p_verdicts, p_natives, p_reasons, p_answers)
		u(seq, n, attempt, verdict, native, reason, answer)
	CROSS JOIN LATERAL (SELECT o.last_status_at FROM outbox_detour o
		WHERE (o.target, o.seq) >= (p_target, u.seq) AND (o.target, o.seq) <= (p_target, u.seq)
		ORDER BY o.target, o.seq LIMIT 1) d
	ON CONFLICT DO NOTHING;
	DELETE FROM outbox_attempt a WHERE a.ctid = ANY (ARRAY(
		SELECT x.place FROM unnest(p_seqs) u(seq) CROSS JOIN LATERAL (
			SELECT o.ctid AS place, row_number() OVER (ORDER BY o.n) AS oldest, row_number() OVER (ORDER BY o.n DESC) AS newest
			FROM outbox_attempt o
			WHERE (o.target, o.seq) >= (p_target, u.seq) AND (o.target, o.seq) <= (p_target, u.seq)) x
		WHERE x.oldest > 1 AND x.newest >= outbox_attempts_kept()));
END $$;

-- Of a message, by target, oldest first.
CREATE OR REPLACE FUNCTION outbox_read_attempts(p_id text)
RETURNS TABLE (target text, at timestamptz, attempt integer, verdict text, native integer, reason text, answer text)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	RETURN QUERY SELECT a.target, a.at, a.attempt, a.verdict, a.native, a.reason, a.answer
	FROM (SELECT l.seq FROM outbox_message l WHERE l.id = p_id UNION SELECT k.seq FROM outbox_kept k WHERE k.id = p_id) m
	CROSS JOIN outbox_target t JOIN outbox_attempt a ON a.target = t.name AND a.seq = m.seq
	ORDER BY a.target, a.seq, a.n;
END $$;
