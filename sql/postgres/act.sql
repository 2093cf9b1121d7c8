-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: operators' actions, one transaction per call.
--
-- Candidates are searched without a lock, then their lanes are locked and each is checked again: of several
-- callers that want the same change, one finds the delivery in the right state. What a live owner has in
-- flight is refused: its settlement would overwrite the change. Once the lease has run out, the lane is
-- first taken over, as by a relay, so that the owner is fenced if it wakes up.
--
-- A new delivery has no row of its own; discarding or deferring it creates one ahead of the lane's
-- position, and the claim that gets there skips the message.

-- The receipt that settled a message: the first one whose position covers it. By binary search: what is settled
-- stays settled, and receipts are numbered without gaps. NULL: retention removed the receipt, which it does only
-- if the message was not meant for this target.
CREATE OR REPLACE FUNCTION outbox_settled_by(p_xid xid8, p_seq bigint, last outbox_receipt, OUT receipt outbox_receipt, OUT routed_by bigint)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	first bigint := (SELECT r.n FROM outbox_receipt r WHERE r.target = last.target AND r.lane = last.lane
		ORDER BY r.n LIMIT 1);
	low bigint := first;
	high bigint := last.n;
	middle outbox_receipt;
BEGIN
	WHILE low < high LOOP
		SELECT * INTO middle FROM outbox_receipt r
			WHERE r.target = last.target AND r.lane = last.lane AND r.n = low + (high - low) / 2;
		IF outbox_is_settled(p_xid, p_seq, middle) THEN
			high := middle.n;
		ELSE
			low := middle.n + 1;
		END IF;
	END LOOP;
	IF low > first THEN
		SELECT * INTO receipt FROM outbox_receipt r
			WHERE r.target = last.target AND r.lane = last.lane AND r.n = low;
		-- Claimed by the previous receipt; otherwise it was skipped, which is not a delivery.
		SELECT r.route_version INTO routed_by FROM outbox_receipt r
			WHERE r.target = last.target AND r.lane = last.lane AND r.n = low - 1
				AND p_seq > r.pos AND p_seq <= r.claim_end AND pg_visible_in_snapshot(p_xid, r.cur)
				AND p_seq <= (receipt).settled_to; -- what was returned was not delivered
	END IF;
END $$;

CREATE OR REPLACE FUNCTION outbox_is_routed(m outbox_message, p_target text, p_version bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
	SELECT EXISTS (SELECT FROM outbox_route r WHERE r.target = p_target AND r.version = p_version
		AND outbox_route_takes((m).type, (m).kind, (m).published, r)
		AND (r.bands IS NULL OR outbox_bands_take(r.bands, (m).priority, (m).seq))
		AND (r.headers IS NULL OR outbox_headers_take(r.headers, (m).headers)))
$$;

-- The state of a message without a detour; state NULL: it is not meant for this target.
CREATE OR REPLACE FUNCTION outbox_place(m outbox_message, t outbox_target, last outbox_receipt, OUT state text, OUT at timestamptz)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	settled record;
	version bigint := t.version;
BEGIN
	IF pg_visible_in_snapshot(m.xid, t.start) THEN
		RETURN;
	ELSIF outbox_is_settled(m.xid, m.seq, last) THEN
		settled := outbox_settled_by(m.xid, m.seq, last);
		version := settled.routed_by;
		state := 'delivered';
		at := (settled.receipt).settled_at;
	ELSIF last.claim_count > 0 AND m.seq <= last.claim_end AND pg_visible_in_snapshot(m.xid, last.cur) THEN
		version := last.route_version;
		state := 'sending';
		at := last.settled_at;
	ELSE
		state := 'pending';
	END IF;
	IF version IS NULL OR NOT outbox_is_routed(m, t.name, version) THEN
		state := NULL;
	END IF;
END $$;

-- New messages of a lane: unread in its window, or after it.
CREATE OR REPLACE FUNCTION outbox_act_unread(p_target text, p_lane integer, p_lanes integer, p_version bigint, w outbox_act_filter,
	p_paused boolean, p_now timestamptz)
RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	last outbox_receipt := outbox_last_receipt(p_target, p_lane);
	route outbox_route;
	here pg_snapshot := pg_current_snapshot();
	log_end bigint := outbox_log_end();
	most bigint := 9223372036854775807;
	found bigint := 0;
	late xid8[];
BEGIN
	SELECT * INTO route FROM outbox_route r WHERE r.target = p_target AND r.version = p_version;
	IF last.claim_end < most AND last.prev::text <> last.cur::text THEN
		late := outbox_late(last.prev, last.prev_xid, last.cur);
		RETURN QUERY SELECT m.seq FROM outbox_window(greatest(last.claim_end, last.floor, w.after_seq - 1), last.prev, last.prev_seq,
			late, last.cur, last.cur_seq, p_lane, p_lanes, route.types, route.kind, route.published_only, route.bands, route.headers,
				most, most) m
			WHERE (w.type IS NULL OR m.type LIKE w.type) AND (w.key IS NULL OR m.key = w.key)
				AND (w.why IS NULL OR outbox_why_unread(p_paused, m.due_at, p_now) = w.why)
				AND (w.created IS NULL OR m.created_at <= w.created)
				AND (m.seq > w.after_seq OR p_target > w.after_target)
				AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = p_target AND d.seq = m.seq)
			LIMIT w.max;
		GET DIAGNOSTICS found = ROW_COUNT;
	END IF;
	late := outbox_late(last.cur, last.cur_xid, here);
	RETURN QUERY SELECT m.seq FROM outbox_window(greatest(last.floor, w.after_seq - 1), last.cur, last.cur_seq,
		late, here, log_end, p_lane, p_lanes, route.types, route.kind, route.published_only, route.bands, route.headers,
				most, most) m
		WHERE (w.type IS NULL OR m.type LIKE w.type) AND (w.key IS NULL OR m.key = w.key)
			AND (w.why IS NULL OR outbox_why_unread(p_paused, m.due_at, p_now) = w.why)
			AND (w.created IS NULL OR m.created_at <= w.created)
			AND (m.seq > w.after_seq OR p_target > w.after_target)
			AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = p_target AND d.seq = m.seq)
		LIMIT w.max;
END $$;

-- Deliveries by filter, ascending: pending and failed detours by the index on their state and, if new ones are
-- wanted, rows of the log after the positions. Finding failed ones costs nothing extra in a log of millions.
CREATE OR REPLACE FUNCTION outbox_act_select(w outbox_act_filter, p_now timestamptz) RETURNS TABLE (seq bigint, target text, lane integer)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	lanes integer := (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
BEGIN
	RETURN QUERY SELECT u.* FROM (
		(SELECT d.seq, d.target, d.lane
		FROM outbox_target t CROSS JOIN unnest(w.states) s(state) CROSS JOIN LATERAL (
			SELECT d.seq, d.target, d.lane FROM outbox_detour d
			LEFT JOIN LATERAL (SELECT l.type, l.created_at FROM outbox_message l WHERE l.seq = d.seq
				UNION ALL SELECT k.type, k.created_at FROM outbox_kept k WHERE k.seq = d.seq LIMIT 1) m ON true
			WHERE d.target = t.name AND d.state = s.state AND d.seq >= w.after_seq
				AND (d.seq > w.after_seq OR d.target > w.after_target)
				AND (w.why IS NULL OR d.why = w.why) AND (w.key IS NULL OR d.key = w.key)
				AND (w.changed IS NULL OR d.last_status_at <= w.changed)
				AND (w.created IS NULL OR m.created_at <= w.created)
				AND (w.type IS NULL OR m.type LIKE w.type)
				AND NOT coalesce(d.why = 'deferred' AND d.next_attempt_at = w.not_until, false)
			ORDER BY d.seq LIMIT w.max) d
		WHERE w.target IS NULL OR t.name = w.target)
		UNION ALL
		SELECT x.seq, t.name, l.lane
		FROM outbox_target t JOIN outbox_lane l ON l.target = t.name
		CROSS JOIN LATERAL outbox_act_unread(t.name, l.lane, lanes, t.version, w, t.paused, p_now) x(seq)
		WHERE (w.target IS NULL OR t.name = w.target) AND 'pending' = ANY (w.states)
			AND (w.why IS NULL OR w.why IN ('deferred', CASE WHEN t.paused THEN 'paused' ELSE 'new' END))
	) u(seq, target, lane) ORDER BY u.seq, u.target LIMIT w.max;
END $$;

-- How many deliveries a filter selects in total, and how old the oldest is. Detours by the index on their state, joined
-- to their messages in one go, not one by one.
CREATE OR REPLACE FUNCTION outbox_act_count(w outbox_act_filter, p_now timestamptz, OUT total bigint, OUT oldest timestamptz)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET jit = off
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
	lanes integer := (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	more bigint;
	more_oldest timestamptz;
BEGIN
	w.max := 9223372036854775807;
	SELECT count(*), min(coalesce(m.created_at, k.created_at)) INTO total, oldest
	FROM outbox_target t JOIN outbox_detour d ON d.target = t.name
	LEFT JOIN outbox_message m ON m.seq = d.seq
	LEFT JOIN outbox_kept k ON k.seq = d.seq AND m.seq IS NULL
	WHERE (w.target IS NULL OR t.name = w.target) AND d.state = ANY (w.states) AND d.seq >= w.after_seq
		AND (d.seq > w.after_seq OR d.target > w.after_target)
		AND (w.why IS NULL OR d.why = w.why) AND (w.key IS NULL OR d.key = w.key)
		AND (w.changed IS NULL OR d.last_status_at <= w.changed)
		AND (w.created IS NULL OR coalesce(m.created_at, k.created_at) <= w.created)
		AND (w.type IS NULL OR coalesce(m.type, k.type) LIKE w.type)
		AND NOT coalesce(d.why = 'deferred' AND d.next_attempt_at = w.not_until, false);
	IF 'pending' = ANY (w.states) THEN
		SELECT count(*), min(m.created_at) INTO more, more_oldest
		FROM outbox_target t JOIN outbox_lane l ON l.target = t.name
		CROSS JOIN LATERAL outbox_act_unread(t.name, l.lane, lanes, t.version, w, t.paused, p_now) x(seq)
		JOIN outbox_message m ON m.seq = x.seq
		WHERE (w.target IS NULL OR t.name = w.target)
			AND (w.why IS NULL OR w.why IN ('deferred', CASE WHEN t.paused THEN 'paused' ELSE 'new' END))
			AND w.changed IS NULL;
		total := total + more;
		oldest := least(oldest, more_oldest);
	END IF;
END $$;

-- And by their ids, in whatever state they are.
CREATE OR REPLACE FUNCTION outbox_act_named(w outbox_act_filter) RETURNS TABLE (seq bigint, target text, lane integer)
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT m.seq, t.name, m.slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes')
	FROM (SELECT DISTINCT id FROM unnest((w).ids) id) i
	CROSS JOIN LATERAL (SELECT l.seq, l.slot, l.type, l.key, l.created_at FROM outbox_message l WHERE l.id = i.id
		UNION SELECT k.seq, k.slot, k.type, k.key, k.created_at FROM outbox_kept k WHERE k.id = i.id) m
	JOIN outbox_target t ON (w).target IS NULL OR t.name = (w).target
	WHERE m.seq >= (w).after_seq AND (m.seq > (w).after_seq OR t.name > (w).after_target)
		AND ((w).key IS NULL OR m.key = (w).key) AND ((w).created IS NULL OR m.created_at <= (w).created)
		AND ((w).type IS NULL OR m.type LIKE (w).type)
	ORDER BY m.seq, t.name
$$;

-- One delivery as it is now; state NULL: there is none.
CREATE OR REPLACE FUNCTION outbox_act_look(p_target text, p_seq bigint, p_lane integer, OUT d outbox_detour, OUT has_row boolean,
	OUT ahead boolean, OUT created timestamptz)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	m outbox_message;
	t outbox_target;
	last outbox_receipt := outbox_last_receipt(p_target, p_lane);
	place record;
BEGIN
	SELECT * INTO m FROM outbox_message l WHERE l.seq = p_seq;
	ahead := FOUND AND NOT outbox_is_settled(m.xid, m.seq, last);
	IF NOT FOUND THEN
		SELECT l.* INTO m FROM outbox_kept k CROSS JOIN LATERAL outbox_kept_message(k) l WHERE k.seq = p_seq;
	END IF;
	created := m.created_at;
	SELECT * INTO d FROM outbox_detour o WHERE o.target = p_target AND o.seq = p_seq;
	has_row := FOUND;
	IF NOT has_row AND m.seq IS NOT NULL THEN
		SELECT * INTO t FROM outbox_target o WHERE o.name = p_target;
		place := outbox_place(m, t, last);
		d.state := place.state;
		d.last_status_at := place.at;
		d.target := p_target;
		d.seq := p_seq;
		d.lane := p_lane;
		d.id := m.id;
		d.key := m.key;
		d.attempts := 0;
		d.why := CASE WHEN place.state = 'pending' THEN CASE WHEN t.paused THEN 'paused' ELSE 'new' END END;
	END IF;
END $$;

CREATE OR REPLACE FUNCTION outbox_lane_is_leased(p_target text, p_lane integer, p_now timestamptz) RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT EXISTS (SELECT FROM outbox_lane WHERE target = p_target AND lane = p_lane
		AND owner IS NOT NULL AND lease_until > p_now)
$$;

-- The owner is dead: fence it; what it had in flight is pending again.
CREATE OR REPLACE FUNCTION outbox_fence_owner(p_target text, p_lane integer, p_actor text, p_token bigint, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	last outbox_receipt := outbox_last_receipt(p_target, p_lane);
BEGIN
	IF last.claim_count > 0 THEN
		PERFORM outbox_take_over(last, coalesce(p_actor, 'operator'), p_token, p_now);
	END IF;
END $$;

-- Make the change and leave its audit row. d is what it was.
CREATE OR REPLACE FUNCTION outbox_change(d outbox_detour, p_has_row boolean, p_ahead boolean, o outbox_act_order, p_hold boolean,
	p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	was text := row_to_json(x)::text FROM (SELECT d.state, d.why, d.attempts, d.last_error AS error) x;
BEGIN
	INSERT INTO outbox_audit (at, actor, action, target, id, seq, reason, detail)
		VALUES (p_now, o.actor, o.action, d.target, d.id, d.seq, o.reason, was);
	d.state := CASE WHEN o.action = 'discard' THEN 'discarded' ELSE 'pending' END;
	d.why := CASE o.action WHEN 'requeue' THEN 'retry' WHEN 'defer' THEN 'deferred' END;
	d.next_attempt_at := CASE o.action WHEN 'requeue' THEN p_now WHEN 'defer' THEN o.until END;
	d.ready_at := coalesce(d.next_attempt_at, d.ready_at);
	IF o.action = 'requeue' THEN
		d.attempts := 0;
		d.failing_since := NULL;
		d.last_error := NULL;
	END IF;
	IF p_has_row THEN
		UPDATE outbox_detour u SET state = d.state, why = d.why, next_attempt_at = d.next_attempt_at,
			attempts = d.attempts, failing_since = d.failing_since, last_error = d.last_error,
			last_status_at = p_now, reason = o.reason, n = NULL, ahead = p_ahead, ready_at = d.ready_at
		WHERE u.target = d.target AND u.seq = d.seq;
	ELSE
		INSERT INTO outbox_detour (target, seq, id, key, lane, state, why, next_attempt_at, last_status_at, reason, ahead,
			ready_at)
		VALUES (d.target, d.seq, d.id, d.key, d.lane, d.state, d.why, d.next_attempt_at, p_now, o.reason, p_ahead,
			d.ready_at);
	END IF;
	IF d.key IS NOT NULL THEN
		PERFORM outbox_promote(d.target, ARRAY[d.key], p_hold, p_now);
	END IF;
END $$;

-- Requeue or discard failed ones all at once, which is ten times as fast as one by one for a million. Their lanes are
-- locked; those that are no longer failed are left alone.
CREATE OR REPLACE FUNCTION outbox_act_failed(o outbox_act_order, p_seqs bigint[], p_targets text[], p_changed timestamptz,
	p_now timestamptz, OUT done bigint, OUT oldest timestamptz)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	keys text[];
	whose text[];
BEGIN
	WITH was AS MATERIALIZED (
		SELECT d.target, d.seq, d.id, d.key, d.attempts, d.last_error,
			coalesce((SELECT m.created_at FROM outbox_message m WHERE m.seq = d.seq),
				(SELECT k.created_at FROM outbox_kept k WHERE k.seq = d.seq)) AS created_at
		FROM unnest(p_seqs, p_targets) u(seq, target) JOIN outbox_detour d ON d.target = u.target AND d.seq = u.seq
		WHERE d.state = 'failed' AND (p_changed IS NULL OR d.last_status_at <= p_changed)
	), noted AS (
		INSERT INTO outbox_audit (at, actor, action, target, id, seq, reason, detail)
		SELECT p_now, o.actor, o.action, w.target, w.id, w.seq, o.reason, row_to_json(x)::text
		FROM was w CROSS JOIN LATERAL (SELECT 'failed' AS state, NULL::text AS why, w.attempts, w.last_error AS error) x
		ORDER BY w.seq, w.target
	), changed AS (
		UPDATE outbox_detour d SET state = CASE WHEN o.action = 'discard' THEN 'discarded' ELSE 'pending' END,
			why = CASE WHEN o.action = 'requeue' THEN 'retry' END,
			next_attempt_at = CASE WHEN o.action = 'requeue' THEN p_now END,
			ready_at = CASE WHEN o.action = 'requeue' THEN p_now ELSE d.ready_at END,
			attempts = CASE WHEN o.action = 'requeue' THEN 0 ELSE d.attempts END,
			failing_since = CASE WHEN o.action <> 'requeue' THEN d.failing_since END,
			last_error = CASE WHEN o.action <> 'requeue' THEN d.last_error END,
			last_status_at = p_now, reason = o.reason, n = NULL
		FROM was w WHERE d.target = w.target AND d.seq = w.seq
	)
	SELECT count(*), min(w.created_at), array_agg(w.key), array_agg(w.target) INTO done, oldest, keys, whose FROM was w;
	PERFORM outbox_promote(t.name, t.keys, t.hold, p_now) FROM (
		SELECT t.name, t.hold, array_agg(DISTINCT u.key) AS keys FROM unnest(keys, whose) u(key, target)
		JOIN outbox_target t ON t.name = u.target WHERE u.key IS NOT NULL GROUP BY t.name, t.hold) t;
END $$;

-- With a filter, a dry run counts all of them; last_seq and last_target are where the next call continues. Lanes are locked in
-- the order of dead.sql.
CREATE OR REPLACE FUNCTION outbox_act(o outbox_act_order, w outbox_act_filter, p_now timestamptz, p_version integer,
	OUT done bigint, OUT refused bigint, OUT more boolean, OUT oldest timestamptz, OUT missing text,
	OUT refused_id text, OUT refused_target text, OUT refused_state text, OUT last_seq bigint, OUT last_target text)
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
-- force_custom_plan: one for any page, made after a few, took ten times as long among a million
SET jit = off SET enable_seqscan = off SET plan_cache_mode = force_custom_plan AS $$
DECLARE
	seqs bigint[];
	targets text[];
	lanes integer[];
	x record;
	look record;
	was outbox_detour;
	state text;
	now timestamptz;
BEGIN
	PERFORM outbox_commit_durably();
	done := 0;
	refused := 0;
	more := false;
	IF cardinality(w.ids) = 0 AND o.dry_run THEN
		SELECT c.total, c.oldest INTO done, oldest FROM outbox_act_count(w, outbox_now(p_now)) c;
		RETURN;
	ELSIF cardinality(w.ids) = 0 THEN
		w.max := w.max + 1;
		SELECT array_agg(c.seq), array_agg(c.target), array_agg(c.lane) INTO seqs, targets, lanes FROM outbox_act_select(w, outbox_now(p_now)) c;
		IF cardinality(seqs) = w.max THEN
			more := true;
			seqs := seqs[:w.max - 1];
			last_seq := seqs[w.max - 1];
			last_target := targets[w.max - 1];
		END IF;
	ELSE
		SELECT array_agg(c.seq), array_agg(c.target), array_agg(c.lane) INTO seqs, targets, lanes FROM outbox_act_named(w) c;
		SELECT count(*), (array_agg(i.id ORDER BY i.n))[1] INTO refused, missing
			FROM unnest(w.ids) WITH ORDINALITY i(id, n)
			WHERE NOT EXISTS (SELECT FROM outbox_message l WHERE l.id = i.id)
				AND NOT EXISTS (SELECT FROM outbox_kept k WHERE k.id = i.id);
	END IF;
	IF NOT o.dry_run THEN
		PERFORM outbox_lock_lane(l.target, l.lane) FROM (
			SELECT u.target, u.lane FROM unnest(targets, lanes) u(target, lane) GROUP BY u.target, u.lane
			ORDER BY outbox_dead_depth(u.target) DESC, u.target, u.lane OFFSET 0) l;
	END IF;
	now := outbox_now(p_now);
	IF cardinality(w.ids) = 0 AND w.states = '{failed}' AND o.action IN ('requeue', 'discard') THEN
		SELECT c.done, c.oldest INTO done, oldest FROM outbox_act_failed(o, seqs, targets, w.changed, now) c;
		RETURN;
	END IF;

	FOR x IN SELECT u.*, t.hold FROM unnest(seqs, targets, lanes) WITH ORDINALITY u(seq, target, lane, i)
			JOIN outbox_target t ON t.name = u.target WHERE u.seq IS NOT NULL ORDER BY u.i LOOP
		look := outbox_act_look(x.target, x.seq, x.lane);
		was := look.d;
		state := was.state;
		CONTINUE WHEN state IS NULL;
		CONTINUE WHEN cardinality(w.ids) = 0 AND state <> ALL (w.states);
		CONTINUE WHEN w.changed IS NOT NULL AND was.last_status_at > w.changed;
		IF state = 'sending' AND NOT outbox_lane_is_leased(x.target, x.lane, now) THEN
			state := 'pending';
		END IF;
		IF state <> ALL (o.allowed) THEN
			refused := refused + 1;
			IF refused_id IS NULL THEN
				refused_id := was.id;
				refused_target := x.target;
				refused_state := state;
			END IF;
			CONTINUE;
		END IF;
		done := done + 1;
		oldest := least(oldest, look.created);
		CONTINUE WHEN o.dry_run;
		IF was.state = 'sending' THEN
			PERFORM outbox_fence_owner(x.target, x.lane, o.actor, o.token, now);
			was.state := 'pending';
		END IF;
		PERFORM outbox_change(was, look.has_row, look.ahead, o, x.hold, now);
	END LOOP;
END $$;

-- For programs of version 1.
CREATE OR REPLACE FUNCTION outbox_act(o outbox_act_order, w outbox_act_filter, p_now timestamptz, OUT done bigint, OUT refused bigint,
	OUT more boolean, OUT oldest timestamptz, OUT missing text, OUT refused_id text, OUT refused_target text,
	OUT refused_state text)
LANGUAGE sql SET search_path FROM CURRENT AS $$
	SELECT a.done, a.refused, a.more, a.oldest, a.missing, a.refused_id, a.refused_target, a.refused_state
	FROM outbox_act(o, w, p_now, 2) a
$$;
