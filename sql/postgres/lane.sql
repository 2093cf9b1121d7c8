-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: owners of lanes: history checks, leases, take-over.

-- ---- positions that belong to another history -------------------------------------------------------------------

--
-- After a restored dump or a sequence that was set back, numbers that a position has passed are used again, and the
-- messages that get them would be skipped. A lane with such a position is refused, and stays refused when publishers have
-- pushed the counters past it: outbox_refuse() records this in outbox_lane, and only outbox_rebase() removes it. The
-- record may be missing if nobody looked, or died while looking; so whenever a window opens, the traces of reused numbers
-- are searched for. No message at or below a receipt's seq has a higher xid than the receipt's (see outbox_receipt).

-- What is wrong is decided by an outbox_fault's kind; its texts are for people. Only here are the two put together.
CREATE OR REPLACE FUNCTION outbox_fault_text(f outbox_fault) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
	SELECT (f).what || '; ' || coalesce((f).remedy, 'run: outbox realign')
$$;

-- A lane is refused.
CREATE OR REPLACE FUNCTION outbox_raise_fault(f outbox_fault) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RAISE EXCEPTION '%', outbox_fault_text(f) USING ERRCODE = 'OB004';
END $$;

-- NULL: the position is not beyond the end of the database.
CREATE OR REPLACE FUNCTION outbox_ahead_fault(p outbox_receipt, log_end bigint, now_at pg_snapshot) RETURNS outbox_fault
LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN (p).cur_seq > log_end THEN ROW('log end',
			format('target %s, lane %s stands at message %s, but the log ends at %s: the log was restored, truncated or its sequence reset',
				(p).target, (p).lane, (p).cur_seq, log_end), NULL)::outbox_fault
		WHEN (p).cur_xid >= pg_snapshot_xmax(now_at) THEN ROW('transaction',
			format('target %s, lane %s stands at transaction %s, but this database is at %s: it comes from another server (restored, copied or upgraded)',
				(p).target, (p).lane, (p).cur_xid, pg_snapshot_xmax(now_at)), NULL)::outbox_fault END
$$;

-- A message at or below p_seq that is younger than p_xid; NULL: none was found. If few are younger, all of them are
-- examined, otherwise the oldest and the youngest of them, p_look of each, and the last one before p_seq: where a counter
-- was set back and has passed again, new ones are next to old ones on one of these sides. Never a scan, not even over
-- dead rows: callers have sequential scans and sorting switched off.
CREATE OR REPLACE FUNCTION outbox_numbered_again(p_floor bigint, p_seq bigint, p_xid xid8, p_look bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
	again bigint;
	looked bigint;
BEGIN
	SELECT min(q.seq) FILTER (WHERE q.seq <= p_seq AND q.seq > p_floor), count(*) INTO again, looked FROM (
		SELECT m.seq FROM outbox_message m WHERE m.xid > p_xid ORDER BY m.xid, m.seq LIMIT p_look) q;
	IF again IS NOT NULL OR looked < p_look THEN
		RETURN again;
	END IF;
	RETURN (SELECT q.seq FROM (
			(SELECT m.seq, m.xid FROM outbox_message m WHERE m.xid > p_xid ORDER BY m.xid DESC, m.seq DESC LIMIT p_look)
			UNION ALL
			(SELECT m.seq, m.xid FROM outbox_message m WHERE m.seq <= p_seq AND m.seq > p_seq - 1000
				ORDER BY m.seq DESC LIMIT 1)) q
		WHERE q.seq <= p_seq AND q.seq > p_floor AND q.xid > p_xid LIMIT 1);
END $$;

CREATE OR REPLACE FUNCTION outbox_reuse_fault(p outbox_receipt, p_seq bigint, p_xid xid8, p_look bigint) RETURNS outbox_fault
LANGUAGE plpgsql STABLE AS $$
DECLARE
	again bigint := outbox_numbered_again(p.floor, p_seq, p_xid, p_look);
BEGIN
	IF again IS NOT NULL THEN
		RETURN ROW('reuse', format('target %s, lane %s stands at message %s, and message %s before it is younger: the log''s sequence was reset',
			p.target, p.lane, p_seq, again), NULL)::outbox_fault;
	END IF;
	RETURN NULL;
END $$;

-- Which server this is, as far as the role may know.
CREATE OR REPLACE FUNCTION outbox_cluster() RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
	RETURN (SELECT system_identifier::text FROM pg_control_system());
EXCEPTION WHEN insufficient_privilege THEN
	RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION outbox_server_fault(p outbox_receipt) RETURNS outbox_fault
LANGUAGE plpgsql STABLE AS $$
DECLARE
	known text := (SELECT value FROM outbox_meta WHERE name = 'cluster');
	here text := outbox_cluster();
BEGIN
	IF known <> here THEN
		RETURN ROW('server', format('target %s, lane %s: its receipts were written on another server (%s here, %s then), whose transaction numbers mean nothing here',
			p.target, p.lane, here, known), NULL)::outbox_fault;
	END IF;
	RETURN NULL;
END $$;

-- As it was recorded when the lane was refused, or NULL.
CREATE OR REPLACE FUNCTION outbox_recorded_fault(p_target text, p_lane integer) RETURNS outbox_fault
LANGUAGE sql STABLE AS $$
	SELECT ROW(l.refused_kind, l.refused, NULL)::outbox_fault FROM outbox_lane l
	WHERE l.target = p_target AND l.lane = p_lane AND l.refused IS NOT NULL
$$;

-- What is wrong with a lane's position, or NULL. p_look as above.
CREATE OR REPLACE FUNCTION outbox_foreign_fault(p outbox_receipt, p_look bigint) RETURNS outbox_fault
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
	SELECT coalesce(outbox_recorded_fault((p).target, (p).lane),
		outbox_ahead_fault(p, outbox_log_end(), pg_current_snapshot()),
		outbox_server_fault(p),
		outbox_reuse_fault(p, (p).prev_seq, (p).prev_xid, p_look),
		CASE WHEN (p).cur_seq > (p).prev_seq THEN outbox_reuse_fault(p, (p).cur_seq, (p).cur_xid, p_look) END)
$$;

-- Record once that a lane is refused; called by the driver after the error, because the refusal itself rolls back.
CREATE OR REPLACE FUNCTION outbox_refuse(p_target text, p_lane integer, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET lock_timeout = '10s' AS $$
BEGIN
	PERFORM outbox_lock_lane(p_target, p_lane);
	UPDATE outbox_lane l SET refused = f.what, refused_kind = f.kind, refused_at = outbox_now(p_now)
		FROM outbox_foreign_fault(outbox_last_receipt(p_target, p_lane), 1000) f
		WHERE l.target = p_target AND l.lane = p_lane AND l.refused IS NULL AND f.what IS NOT NULL;
END $$;

-- A message's lane depends on the number of lanes: with another number, messages would be skipped.
CREATE OR REPLACE FUNCTION outbox_lane_count_fault(p_target text, p_lanes integer) RETURNS outbox_fault
LANGUAGE sql STABLE AS $$
	SELECT ROW('lanes', format('target %s has %s lanes, but outbox_meta says %s: it was changed by hand', p_target, l.there, p_lanes),
		format('set it back: UPDATE outbox_meta SET value = ''%s'' WHERE name = ''lanes''', l.there))::outbox_fault
	FROM (SELECT max(lane) + 1 AS there FROM outbox_lane WHERE target = p_target) l WHERE l.there <> p_lanes
$$;

-- One round of lease keeping. lanes: those held now. elsewhere: where a live worker that was here first sends to, if this
-- one would send to a different place.
CREATE OR REPLACE FUNCTION outbox_lease(p_target text, p_owner text, p_duration bigint, p_version bigint, p_leaving boolean,
	p_outage text, p_outage_age bigint, p_now timestamptz, p_place text,
	OUT total integer, OUT share integer, OUT stale_route boolean, OUT lanes integer[], OUT elsewhere text,
	OUT elsewhere_owner text)
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
	IF NOT p_leaving THEN
		SELECT w.place, w.owner INTO elsewhere, elsewhere_owner FROM outbox_worker w
			WHERE w.target = p_target AND w.owner <> p_owner AND w.place <> p_place ORDER BY w.owner COLLATE "C" LIMIT 1;
	END IF;
	IF p_leaving OR stale_route OR elsewhere IS NOT NULL THEN
		DELETE FROM outbox_worker WHERE target = p_target AND owner = p_owner;
	ELSE
		INSERT INTO outbox_worker AS w (target, owner, alive_until, outage, outage_since, place)
		VALUES (p_target, p_owner, until, p_outage,
			CASE WHEN p_outage IS NOT NULL THEN t - p_outage_age * interval '1 microsecond' END, p_place)
		ON CONFLICT (target, owner) DO UPDATE SET alive_until = excluded.alive_until,
			outage = excluded.outage, outage_since = excluded.outage_since, place = excluded.place;
	END IF;
	SELECT count(*) INTO total FROM outbox_lane WHERE target = p_target;
	IF stale_route OR elsewhere IS NOT NULL THEN
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

-- The same for programs that do not say where they send to.
CREATE OR REPLACE FUNCTION outbox_lease(p_target text, p_owner text, p_duration bigint, p_version bigint, p_leaving boolean,
	p_outage text, p_outage_age bigint, p_now timestamptz,
	OUT total integer, OUT share integer, OUT stale_route boolean, OUT lanes integer[])
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT l.total, l.share, l.stale_route, l.lanes
	FROM outbox_lease(p_target, p_owner, p_duration, p_version, p_leaving, p_outage, p_outage_age, p_now, NULL) l
$$;

-- Record that a worker does not serve a target, and why; NULL: it serves the target again.
CREATE OR REPLACE FUNCTION outbox_note_unserved(p_target text, p_owner text, p_duration bigint, p_why text, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	t timestamptz := outbox_now(p_now);
BEGIN
	DELETE FROM outbox_unserved WHERE alive_until <= t OR (p_why IS NULL AND target = p_target AND owner = p_owner);
	IF p_why IS NOT NULL THEN
		INSERT INTO outbox_unserved (target, owner, alive_until, since, why)
		VALUES (p_target, p_owner, t + p_duration * interval '1 microsecond', t, p_why)
		ON CONFLICT (target, owner) DO UPDATE SET alive_until = excluded.alive_until, why = excluded.why;
	END IF;
END $$;

-- For each target that a relay does not serve, the reason that the first such relay gives.
CREATE OR REPLACE FUNCTION outbox_list_unserved(p_now timestamptz, OUT target text, OUT since timestamptz, OUT why text)
RETURNS SETOF record
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT DISTINCT ON (u.target COLLATE "C") u.target, u.since, u.why FROM outbox_unserved u
	WHERE u.alive_until > outbox_now(p_now) ORDER BY u.target COLLATE "C", u.since, u.owner COLLATE "C"
$$;

CREATE OR REPLACE FUNCTION outbox_release(p_target text, p_lane integer, p_owner text) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	UPDATE outbox_lane SET owner = NULL, lease_until = '-infinity'
	WHERE target = p_target AND lane = p_lane AND owner = p_owner
$$;

-- Append a take-over receipt: it fences the owner, and what was in flight is pending again. The lane is locked.
-- The first owner that dies with messages in flight is considered bad luck; from the second on, if nothing was
-- settled in between, the lane is cautious: one message at a time until all that was in flight is settled.
-- An owner that dies in that mode leaves exactly one message in flight: the suspect.
CREATE OR REPLACE FUNCTION outbox_take_over(last outbox_receipt, p_owner text, p_token bigint, p_now timestamptz) RETURNS outbox_receipt
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	succ outbox_receipt := outbox_next_receipt(last, p_token, p_owner, p_now);
	fault outbox_fault := coalesce(outbox_foreign_fault(last, 100000),
		outbox_lane_count_fault(last.target, (SELECT value::integer FROM outbox_meta WHERE name = 'lanes')));
BEGIN
	IF fault.what IS NOT NULL THEN
		PERFORM outbox_raise_fault(fault);
	END IF;
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
		succ := last; -- the same request, done before
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
