-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL, version 2: numbers while a million are requeued. Put like the questions of a claim, see
-- v2_claim.sql: by what the statistics said, all detours of a target were read to count the few that failed.

-- As in look.sql, but for the last look: one entry of the index, not all.
CREATE OR REPLACE FUNCTION outbox_reading_of(t outbox_target) RETURNS outbox_reading
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	v outbox_reading;
	now_at pg_snapshot := pg_current_snapshot();
BEGIN
	v.target := t.name;
	v.start := t.start;
	v.lanes := (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	v.route := (SELECT o FROM outbox_route o WHERE o.target = t.name AND o.version = t.version);
	v.last := ARRAY(SELECT (SELECT r FROM outbox_receipt r WHERE r.target = t.name AND r.lane = l
		ORDER BY r.n DESC LIMIT 1) FROM generate_series(0, v.lanes - 1) l ORDER BY l);
	v.routes := ARRAY(SELECT (SELECT o FROM outbox_route o WHERE o.target = t.name AND o.version = l.route_version)
		FROM unnest(v.last) l ORDER BY l.lane);
	v.late := ARRAY(SELECT DISTINCT x FROM (SELECT DISTINCT prev::text, prev_xid, cur::text, cur_xid FROM unnest(v.last)) l
		(prev, prev_xid, cur, cur_xid) CROSS JOIN LATERAL unnest(
			outbox_late(l.prev::pg_snapshot, l.prev_xid, l.cur::pg_snapshot)
			|| outbox_late(l.cur::pg_snapshot, l.cur_xid, now_at)) x);
	SELECT min(greatest(l.pos, l.prev_seq)), max(l.cur_seq), max(l.claim_last) INTO v.low, v.log_end, v.claim_last
		FROM unnest(v.last) l;
	v.detours := (SELECT d.seq FROM outbox_detour d
		WHERE d.target = t.name AND d.seq > CASE WHEN v.late = '{}' THEN v.low ELSE 0 END
		ORDER BY d.target, d.seq LIMIT 1) IS NOT NULL;
	RETURN v;
END $$;

-- As in stats.sql.
CREATE FUNCTION outbox_count_state(p_target text, p_state text, p_cap bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
	RETURN (SELECT count(*) FROM (SELECT FROM outbox_detour d WHERE d.target = p_target
		AND (d.state, d.seq) >= (p_state, 0) AND (d.state, d.seq) <= (p_state, 9223372036854775807)
		ORDER BY d.state, d.seq LIMIT p_cap) n);
END $$;

CREATE OR REPLACE FUNCTION outbox_count_detours(p_target text, p_cap bigint, INOUT s outbox_numbers)
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
	first bigint[];
BEGIN
	SELECT least(count(*) FILTER (WHERE why = 'retry'), p_cap), least(count(*) FILTER (WHERE why = 'deferred'), p_cap),
		least(count(*) FILTER (WHERE why = 'parked'), p_cap) INTO s.waiting, s.deferred, s.parked
		FROM (SELECT d.why FROM outbox_detour d WHERE d.target = p_target
			AND (d.state, d.seq) >= ('pending', 0) AND (d.state, d.seq) <= ('pending', 9223372036854775807)
			ORDER BY d.state, d.seq LIMIT 1000000) n;
	s.failed := outbox_count_state(p_target, 'failed', p_cap);
	s.discarded := outbox_count_state(p_target, 'discarded', p_cap);
	first := ARRAY[
		(SELECT d.seq FROM outbox_detour d WHERE d.target = p_target
			AND (d.state, d.seq) >= ('sending', 0) AND (d.state, d.seq) <= ('sending', 9223372036854775807)
			ORDER BY d.state, d.seq LIMIT 1),
		(SELECT d.seq FROM outbox_detour d WHERE d.target = p_target
			AND (d.state, d.seq) >= ('pending', 0) AND (d.state, d.seq) <= ('pending', 9223372036854775807)
			AND NOT (d.why = 'deferred' AND d.next_attempt_at > s.now)
			ORDER BY d.state, d.seq LIMIT 1)];
	s.oldest := least(s.oldest, (SELECT min(coalesce((SELECT m.created_at FROM outbox_message m WHERE m.seq = f),
		(SELECT k.created_at FROM outbox_kept k WHERE k.seq = f))) FROM unnest(first) f));
END $$;
