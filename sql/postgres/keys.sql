-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: keys that wait.

-- A key waits for its first delivery that waits for a retry, is being sent, or failed at a target with hold.
CREATE OR REPLACE FUNCTION outbox_blocked_keys(p_target text, p_after bigint, p_after_target text, p_max bigint, p_cap bigint,
	p_now timestamptz)
RETURNS TABLE (seq bigint, id text, target text, type text, key text, lane integer, state text, why text, attempts integer,
	owner text, last_error text, reason text, event_time timestamptz, created_at timestamptz, last_status_at timestamptz,
	next_attempt_at timestamptz, since timestamptz, parked bigint)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off SET enable_seqscan = off SET jit = off AS $$
	SELECT f.seq, f.id, f.target, coalesce(m.type, k.type), f.key, f.lane, f.state,
		CASE WHEN f.state = 'pending' THEN f.why END, f.attempts, f.owner, f.last_error, f.reason,
		coalesce(m.event_time, k.event_time), coalesce(m.created_at, k.created_at), f.last_status_at, f.next_attempt_at,
		coalesce(f.failing_since, f.last_status_at),
		(SELECT count(*) FROM (SELECT FROM outbox_detour p WHERE p.target = f.target AND p.key = f.key
			AND p.state = 'pending' AND p.why = 'parked' AND p.seq > f.seq LIMIT p_cap) n)
	FROM (SELECT d.* FROM outbox_target t
		CROSS JOIN unnest(ARRAY['pending', 'sending', 'failed']) s(state)
		CROSS JOIN LATERAL (SELECT d.* FROM outbox_detour d
			WHERE d.target = t.name AND d.state = s.state AND d.seq >= p_after AND d.key IS NOT NULL
				AND (d.seq > p_after OR d.target > p_after_target)
				AND (d.state <> 'pending' OR d.why = 'retry')
				AND NOT EXISTS (SELECT FROM outbox_detour b WHERE b.target = d.target AND b.key = d.key AND b.seq < d.seq
					AND b.state IN ('pending', 'failed')
					AND ((b.state = 'pending' AND NOT (b.why = 'deferred' AND b.next_attempt_at > p_now))
						OR (t.hold AND b.state = 'failed')))
				AND NOT EXISTS (SELECT FROM outbox_detour b WHERE b.target = d.target AND b.lane = d.lane
					AND b.state = 'sending' AND b.key = d.key AND b.seq < d.seq)
			ORDER BY d.seq LIMIT p_max) d
		WHERE (p_target IS NULL OR t.name = p_target) AND NOT t.unordered AND (s.state <> 'failed' OR t.hold)
		ORDER BY d.seq, d.target COLLATE "C" LIMIT p_max) f
	LEFT JOIN outbox_message m ON m.seq = f.seq
	LEFT JOIN outbox_kept k ON k.seq = f.seq AND m.seq IS NULL
	ORDER BY f.seq, f.target COLLATE "C"
$$;
