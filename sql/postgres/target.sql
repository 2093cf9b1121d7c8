-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: targets, their routing and where they begin to read.
--
-- Locks, in this order: the janitor's (purge.sql) when a routing is new, lane -2 of a target to change it, -1 for its
-- leases, then its lanes.

CREATE OR REPLACE FUNCTION outbox_lock_lanes(p_target text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	l integer;
BEGIN
	FOR l IN SELECT lane FROM outbox_lane WHERE target = p_target ORDER BY lane LOOP
		PERFORM outbox_lock_lane(p_target, l);
	END LOOP;
END $$;

-- A glob (* any text, ? one character) as a LIKE pattern. chr(92) is the backslash.
CREATE OR REPLACE FUNCTION outbox_like(glob text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT AS $$
	SELECT replace(replace(replace(replace(replace(glob, chr(92), chr(92) || chr(92)), '%', chr(92) || '%'), '_', chr(92) || '_'),
		'*', '%'), '?', '_')
$$;

-- The LIKE patterns of a route; NULL: every type.
CREATE OR REPLACE FUNCTION outbox_patterns(p_globs text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $$
	SELECT CASE WHEN cardinality(p_globs) > 0 AND '*' <> ALL (p_globs)
		THEN ARRAY(SELECT outbox_like(g) FROM unnest(p_globs) g) END
$$;

-- Those of its headers, which programs before version 6 do not name; NULL: it asks for none. names in lower case
CREATE OR REPLACE FUNCTION outbox_header_patterns(p_route text) RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $$
	SELECT array_agg(outbox_like(lower(split_part(h, '=', 1) COLLATE "C") || substr(h, strpos(h, '='))))
	FROM json_array_elements_text(CASE WHEN p_route LIKE '%"headers":[%' THEN p_route::json -> 'headers' END) h
$$;

CREATE OR REPLACE FUNCTION outbox_add_route(g outbox_registration, p_version bigint) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	INSERT INTO outbox_route (target, version, types, kind, published_only, bands, headers)
	VALUES ((g).target, p_version, outbox_patterns((g).globs), (g).kind, (g).published_only, (g).bands,
		outbox_header_patterns((g).route))
$$;

-- Did a lane of this target (NULL: of any) ever settle something? Then its position has left the start. A target that
-- starts at a time is in the middle of a window when it begins.
CREATE OR REPLACE FUNCTION outbox_has_settled(p_target text) RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT EXISTS (SELECT FROM outbox_target t JOIN outbox_lane l ON l.target = t.name
		CROSS JOIN LATERAL (SELECT r.prev, r.pos FROM outbox_receipt r
			WHERE r.target = l.target AND r.lane = l.lane ORDER BY r.n DESC LIMIT 1) last
		WHERE (p_target IS NULL OR t.name = p_target)
			AND (last.prev::text <> t.start::text OR last.pos > coalesce((SELECT f.pos FROM outbox_receipt f
				WHERE f.target = l.target AND f.lane = l.lane AND f.n = 1), 0)))
$$;

-- Must a target say where it starts? Yes, if it is new and messages were delivered here before.
CREATE OR REPLACE FUNCTION outbox_wants_start(p_target text) RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT NOT EXISTS (SELECT FROM outbox_target WHERE name = p_target)
		AND (outbox_has_settled(NULL) OR EXISTS (SELECT FROM outbox_meta WHERE name = 'settled'))
$$;

-- A lane that begins at a snapshot, with receipt number p_n.
CREATE OR REPLACE FUNCTION outbox_start_lane(p_target text, p_lane integer, p_n bigint, p_version bigint, p_token bigint,
	p_start pg_snapshot, p_seq bigint, p_xid xid8, p_now timestamptz) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	INSERT INTO outbox_receipt (target, lane, n, token, settled_at, route_version,
		prev, prev_seq, prev_xid, cur, cur_seq, cur_xid, pos, claim_end)
	VALUES (p_target, p_lane, p_n, p_token, p_now, p_version,
		p_start, p_seq, p_xid, p_start, p_seq, p_xid, 0, 0)
$$;

-- Where a target that starts now begins: a snapshot, the end of the log and a transaction number, in this order, see
-- outbox_receipt. A transaction gets its number with its first lock, so the other two are noted before that.
CREATE OR REPLACE FUNCTION outbox_note_end() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	here pg_snapshot := pg_current_snapshot();
BEGIN
	IF pg_current_xact_id_if_assigned() IS NULL THEN
		PERFORM set_config('outbox.noted_end', here::text || ' ' || outbox_log_end(), true);
	END IF;
END $$;

CREATE OR REPLACE FUNCTION outbox_noted_end(OUT at pg_snapshot, OUT seq bigint, OUT xid xid8)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	noted text := nullif(current_setting('outbox.noted_end', true), '');
BEGIN
	at := coalesce(split_part(noted, ' ', 1)::pg_snapshot, pg_current_snapshot());
	seq := coalesce(split_part(noted, ' ', 2)::bigint, outbox_log_end());
	xid := pg_current_xact_id();
END $$;

CREATE OR REPLACE FUNCTION outbox_add_target(g outbox_registration, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	begin_at pg_snapshot := '3:3:';
	begin_seq bigint := 0;
	begin_xid xid8 := '0';
	new_version bigint := 1 + coalesce((SELECT max(version) FROM outbox_route WHERE target = g.target), 0);
BEGIN
	IF g.start = 0 AND outbox_wants_start(g.target) THEN
		RAISE EXCEPTION 'it is new, and messages were already delivered here: say where it starts, oldest, now or a time'
			USING ERRCODE = 'OB006';
	ELSIF g.start = 2 THEN
		SELECT e.at, e.seq, e.xid INTO begin_at, begin_seq, begin_xid FROM outbox_noted_end() e;
	END IF;
	INSERT INTO outbox_target (name, version, route, hold, unordered, created_at, start)
		VALUES (g.target, new_version, g.route, g.hold, g.unordered, p_now, begin_at);
	PERFORM outbox_add_route(g, new_version);
	FOR l IN 0 .. (SELECT value::integer - 1 FROM outbox_meta WHERE name = 'lanes') LOOP
		INSERT INTO outbox_lane (target, lane) VALUES (g.target, l);
		PERFORM outbox_start_lane(g.target, l, 1, new_version, g.token, begin_at, begin_seq, begin_xid, p_now);
	END LOOP;
	RETURN new_version;
END $$;

-- Does this target have this routing, and do its lanes use it? Another routing, whoever set it, must not last.
CREATE OR REPLACE FUNCTION outbox_is_routed_by(p_target text, p_route text, p_globs text[], p_published_only boolean)
RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT EXISTS (SELECT FROM outbox_target t JOIN outbox_route r ON r.target = t.name AND r.version = t.version
		WHERE t.name = p_target AND t.route = p_route AND r.types IS NOT DISTINCT FROM outbox_patterns(p_globs)
			AND r.published_only = p_published_only)
$$;

-- A purge in progress does not know a new target or a new routing, and would remove what it gets. This lock is taken
-- before every other one.
CREATE OR REPLACE FUNCTION outbox_route_lock(p_target text, p_route text, p_globs text[], p_published_only boolean) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	PERFORM outbox_note_end();
	IF NOT outbox_is_routed_by(p_target, p_route, p_globs, p_published_only) THEN
		PERFORM outbox_janitor_lock(true);
	END IF;
END $$;

-- Add a target, or change one. start 3 is outbox_put_target_at()'s. Returns the version of its routing.
CREATE OR REPLACE FUNCTION outbox_put_target(g outbox_registration) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	known outbox_target;
	new_version bigint;
	rerouted boolean;
	t timestamptz;
BEGIN
	PERFORM outbox_commit_durably();
	PERFORM outbox_route_lock(g.target, g.route, g.globs, g.published_only);
	PERFORM outbox_lock_lane(g.target, -2);
	t := outbox_now(g.now);
	SELECT * INTO known FROM outbox_target WHERE name = g.target;
	IF NOT FOUND THEN
		new_version := outbox_add_target(g, t);
		PERFORM outbox_cancel_for(g.target, t);
		RETURN new_version;
	END IF;
	rerouted := NOT outbox_is_routed_by(g.target, g.route, g.globs, g.published_only);
	IF NOT rerouted AND known.hold = g.hold AND known.unordered = g.unordered THEN
		RETURN known.version;
	END IF;
	IF rerouted THEN
		PERFORM outbox_janitor_lock(true); -- held, unless somebody changed the routing after outbox_route_lock() looked
		-- before the lanes, which who is cancelling locks when it commits: see outbox_cancel_for()
		LOCK TABLE outbox_cancelled IN SHARE MODE;
	END IF;
	PERFORM outbox_lock_lanes(g.target);
	new_version := known.version + rerouted::integer;
	UPDATE outbox_target SET version = new_version, route = g.route, hold = g.hold, unordered = g.unordered
		WHERE name = g.target;
	IF rerouted THEN
		PERFORM outbox_add_route(g, new_version);
		PERFORM outbox_cancel_for(g.target, t);
	END IF;
	IF known.hold <> g.hold OR known.unordered <> g.unordered THEN
		-- What was parked may be first in its key now. Due too early is harmless: a claim looks.
		UPDATE outbox_detour SET next_attempt_at = t
			WHERE target = g.target AND state = 'pending' AND next_attempt_at IS NULL;
	END IF;
	RETURN new_version;
END $$;

-- Where a new target that starts at a time begins: everything up to this message is not for it. NULL: no message
-- is that young.
CREATE OR REPLACE FUNCTION outbox_start_floor(p_time timestamptz) RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT seq - 1 FROM outbox_message WHERE created_at >= p_time ORDER BY seq LIMIT 1
$$;

-- The same with a dead letter target, and start 3: at start_at.
CREATE OR REPLACE FUNCTION outbox_put_target_at(g outbox_registration) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	floor_seq bigint;
	version bigint;
	fresh pg_snapshot;
	fresh_seq bigint;
	fresh_xid xid8;
	at_time boolean := g.start = 3;
	is_new boolean := NOT EXISTS (SELECT FROM outbox_target WHERE name = g.target);
BEGIN
	IF is_new AND at_time THEN
		IF g.start_at > outbox_now(g.now) THEN
			RAISE EXCEPTION 'start: % is in the future; a target can start at a time in the past, at oldest or now',
				to_char(g.start_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') USING ERRCODE = 'OB006';
		END IF;
		PERFORM outbox_note_end();
		-- A purge in progress must not remove what is found here.
		PERFORM outbox_janitor_lock(true);
		SELECT e.at, e.seq, e.xid INTO fresh, fresh_seq, fresh_xid FROM outbox_noted_end() e;
		floor_seq := outbox_start_floor(g.start_at);
	END IF;
	IF at_time THEN
		g.start := 1;
	END IF;
	version := outbox_put_target(g);
	-- It has read what is visible now, up to there. What is not committed yet may be from after the time: it follows.
	IF is_new AND at_time THEN
		UPDATE outbox_receipt r SET cur = fresh, cur_seq = fresh_seq, cur_xid = fresh_xid,
			pos = coalesce(floor_seq, fresh_seq), claim_end = coalesce(floor_seq, fresh_seq)
			WHERE r.target = g.target AND r.token = g.token AND r.n = 1 AND r.claim_count = 0;
		-- what was cancelled before that time is none of its business
		DELETE FROM outbox_detour d USING outbox_message m WHERE d.target = g.target AND m.seq = d.seq
			AND outbox_is_settled(m.xid, m.seq, outbox_last_receipt(d.target, d.lane));
	END IF;
	PERFORM outbox_target_dead(g.target, g.dead_letter);
	RETURN version;
END $$;

-- Register a target, or change one, with its bands. Returns the version of its routing.
CREATE OR REPLACE FUNCTION outbox_register(g outbox_registration) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	PERFORM outbox_route_lock(g.target, g.route, g.globs, g.published_only);
	g.bands := outbox_bands_plan(g.target, g.priorities, g.family, g.start);
	g.start := outbox_band_start(g.start, g.target, g.family);
	RETURN outbox_band_note(g.target, g.family, outbox_put_target_at(g));
END $$;

-- The same, and a target that is new is paused before anybody can claim for it.
CREATE OR REPLACE FUNCTION outbox_register(g outbox_registration, p_paused boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	is_new boolean;
	version bigint;
BEGIN
	PERFORM outbox_route_lock(g.target, g.route, g.globs, g.published_only);
	PERFORM outbox_lock_lane(g.target, -2);
	is_new := NOT EXISTS (SELECT FROM outbox_target WHERE name = g.target);
	version := outbox_register(g);
	IF is_new AND p_paused THEN
		PERFORM outbox_target_pause(g.target, true, 'configuration', 'paused: true', g.now);
	END IF;
	RETURN version;
END $$;

-- The kind of programs of versions 2 and 3 has the bands with it: see outbox_band_kind().
CREATE OR REPLACE FUNCTION outbox_split_kind(p_kind text, OUT kind text, OUT bands bigint[])
LANGUAGE sql IMMUTABLE AS $$
	SELECT nullif(split_part(p_kind, ' ', 1), '*'), nullif(split_part(p_kind, ' ', 2), '')::bigint[]
$$;

-- As programs of versions 2 and 3 call it.
CREATE OR REPLACE FUNCTION outbox_target_put(p_target text, p_route text, p_globs text[], p_kind text, p_published_only boolean,
	p_hold boolean, p_unordered boolean, p_start integer, p_token bigint, p_now timestamptz, p_start_at timestamptz,
	p_dead text) RETURNS bigint
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT outbox_put_target_at(ROW(p_target, p_route, p_globs, k.kind, p_published_only, NULL, NULL, k.bands, p_hold, p_unordered,
		p_start, p_start_at, p_dead, p_token, p_now)::outbox_registration) FROM outbox_split_kind(p_kind) k
$$;

-- As programs of version 1 call it.
CREATE OR REPLACE FUNCTION outbox_target_put(p_target text, p_route text, p_globs text[], p_kind text, p_published_only boolean,
	p_hold boolean, p_unordered boolean, p_start integer, p_token bigint, p_now timestamptz) RETURNS bigint
LANGUAGE sql SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT outbox_put_target(ROW(p_target, p_route, p_globs, k.kind, p_published_only, NULL, NULL, k.bands, p_hold, p_unordered,
		p_start, NULL, NULL, p_token, p_now)::outbox_registration) FROM outbox_split_kind(p_kind) k
$$;

CREATE OR REPLACE FUNCTION outbox_target_pause(p_target text, p_pause boolean, p_actor text, p_reason text, p_now timestamptz)
RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	t timestamptz;
	was boolean;
BEGIN
	PERFORM outbox_commit_durably();
	PERFORM outbox_lock_lane(p_target, -2);
	t := outbox_now(p_now);
	SELECT paused INTO was FROM outbox_target WHERE name = p_target;
	IF NOT FOUND THEN
		PERFORM outbox_no_target(p_target);
	ELSIF was <> p_pause THEN
		UPDATE outbox_target SET paused = p_pause,
			paused_by = CASE WHEN p_pause THEN p_actor END,
			paused_reason = CASE WHEN p_pause THEN p_reason END,
			paused_at = CASE WHEN p_pause THEN t END,
			resumed_at = CASE WHEN p_pause THEN resumed_at ELSE t END
		WHERE name = p_target;
		INSERT INTO outbox_audit (at, actor, action, target, reason)
			VALUES (t, p_actor, CASE WHEN p_pause THEN 'pause' ELSE 'resume' END, p_target, p_reason);
	END IF;
END $$;

CREATE OR REPLACE FUNCTION outbox_target_drop(p_target text, p_actor text, p_reason text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	whose text;
BEGIN
	PERFORM outbox_commit_durably();
	PERFORM outbox_lock_lane(p_target, -2);
	PERFORM outbox_lock_lane(p_target, -1);
	PERFORM outbox_lock_lane('dead letters', -3);
	SELECT name INTO whose FROM outbox_target WHERE dead_letter = p_target ORDER BY name LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'target "%" is the dead letter target of "%"; remove that setting first, or drop "%"', p_target, whose, whose
			USING ERRCODE = 'OB002';
	END IF;
	PERFORM outbox_lock_lanes(p_target);
	IF NOT EXISTS (SELECT FROM outbox_target WHERE name = p_target) THEN
		PERFORM outbox_no_target(p_target);
	END IF;
	IF outbox_has_settled(p_target) THEN
		INSERT INTO outbox_meta (name, value) VALUES ('settled', '1') ON CONFLICT (name) DO NOTHING;
	END IF;
	DELETE FROM outbox_detour WHERE target = p_target;
	DELETE FROM outbox_receipt WHERE target = p_target;
	DELETE FROM outbox_lane WHERE target = p_target;
	DELETE FROM outbox_worker WHERE target = p_target;
	DELETE FROM outbox_unserved WHERE target = p_target;
	-- the newest version stays: its number must never be used again
	DELETE FROM outbox_route r WHERE r.target = p_target
		AND r.version < (SELECT max(version) FROM outbox_route WHERE target = p_target);
	DELETE FROM outbox_target WHERE name = p_target;
	INSERT INTO outbox_audit (at, actor, action, target, reason)
		VALUES (outbox_now(p_now), p_actor, 'drop target', p_target, p_reason);
END $$;

-- Remove every message, detour and audit row. Targets and lanes stay, and every lane is at the end of the log as
-- if it were new: seq goes on counting. The new receipts have a new token: running relays are fenced.
CREATE OR REPLACE FUNCTION outbox_truncate(p_token bigint, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	t timestamptz;
	begin_at pg_snapshot;
	lasts outbox_receipt[];
	last outbox_receipt;
	each_target text;
BEGIN
	PERFORM outbox_commit_durably();
	-- First of all: others that have read these tables and wait for a lane would wait for us, and we for them.
	LOCK TABLE outbox_message, outbox_kept, outbox_detour, outbox_attempt, outbox_cancelled, outbox_id IN ACCESS EXCLUSIVE MODE;
	FOR each_target IN SELECT name FROM outbox_target ORDER BY name LOOP
		PERFORM outbox_lock_lane(each_target, -2);
		PERFORM outbox_lock_lane(each_target, -1);
		PERFORM outbox_lock_lanes(each_target);
	END LOOP;
	t := outbox_now(p_now);
	PERFORM set_config('outbox.janitor', 'on', true);
	-- This waits for everybody who has published and not committed: no message up to here is still to come.
	TRUNCATE outbox_message, outbox_kept, outbox_detour, outbox_attempt, outbox_cancelled, outbox_id;
	PERFORM set_config('outbox.janitor', '', true);
	begin_at := pg_current_snapshot();
	lasts := ARRAY(SELECT outbox_last_receipt(l.target, l.lane) FROM outbox_lane l);
	DELETE FROM outbox_receipt;
	DELETE FROM outbox_amended;
	DELETE FROM outbox_audit;
	DELETE FROM outbox_worker;
	DELETE FROM outbox_unserved;
	DELETE FROM outbox_meta WHERE name = 'settled';
	UPDATE outbox_lane SET owner = NULL, lease_until = '-infinity', takeovers = 0, refused = NULL, refused_kind = NULL,
		refused_at = NULL;
	UPDATE outbox_target SET start = begin_at;
	FOREACH last IN ARRAY lasts LOOP
		PERFORM outbox_start_lane(last.target, last.lane, last.n + 1, last.route_version, p_token,
			begin_at, outbox_log_end(), pg_current_xact_id(), t);
	END LOOP;
END $$;
