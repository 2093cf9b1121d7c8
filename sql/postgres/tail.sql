-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: what was settled, in the order of the receipts' numbers.
--
-- A number is drawn before its transaction commits, so a receipt may appear below one that was already reported.
-- A cursor of one number would skip it; waiting until no older transaction runs would let one slow writer
-- silence the tail. So the cursor remembers the numbers that were missing below the last one reported, and
-- reports them when they appear. A number is given up when every transaction that may have drawn it has
-- ended: those that had an xid when it was found missing. (A transaction draws its number after its xid:
-- outbox_append_receipt sees to it.)
--
-- Cursor "A:P:S,LO-HI@N,...": every receipt up to number A is reported, except what is after seq S of number P (P = 0:
-- nothing), and except the numbers LO to HI, which transactions below N may still bring.

-- The gaps that a cursor has room for. The next one has to wait until an older one is closed.
CREATE OR REPLACE FUNCTION outbox_gaps_max() RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT 50 $$;

-- What one receipt settled, after a seq. Its delivered log rows were claimed by the receipt before it; a
-- detour that was settled again since then appears with its later receipt only.
CREATE OR REPLACE FUNCTION outbox_settled_with(r outbox_receipt, p_after bigint, p_max bigint) RETURNS SETOF outbox_look
LANGUAGE plpgsql STABLE AS $$
DECLARE
	lanes integer := (SELECT value::integer FROM outbox_meta WHERE name = 'lanes');
	stop bigint;
	c outbox_receipt;
	o outbox_route;
BEGIN
	IF r.delivered > 0 THEN
		SELECT * INTO c FROM outbox_receipt b WHERE b.target = r.target AND b.lane = r.lane AND b.n = r.n - 1;
		SELECT * INTO o FROM outbox_route b WHERE b.target = r.target AND b.version = c.route_version;
		stop := least(c.claim_end, r.settled_to);
	END IF;
	RETURN QUERY SELECT u.* FROM (
		SELECT w.seq, w.id, r.target, w.type, w.key, r.lane, 'delivered', NULL::text, 0, r.owner, NULL::text, NULL::text,
			w.event_time, w.created_at, r.settled_at, NULL::timestamptz
		FROM outbox_window(greatest(c.pos, c.floor, p_after), c.prev, c.prev_seq, outbox_late(c.prev, c.prev_xid, c.cur),
			c.cur, least(c.cur_seq, stop), r.lane, lanes, o.types, o.kind, o.published_only, o.bands, o.headers, NULL, NULL) w
		WHERE o.version IS NOT NULL AND w.seq <= stop
			AND NOT EXISTS (SELECT FROM outbox_detour d WHERE d.target = r.target AND d.seq = w.seq)
		UNION ALL
		SELECT d.seq, d.id, d.target, d.type, d.key, d.lane,
			CASE d.state WHEN 'sending' THEN 'pending' ELSE d.state END, -- claimed again meanwhile
			CASE WHEN d.state IN ('pending', 'sending') THEN d.why END, d.attempts, r.owner, d.last_error, d.reason,
			d.event_time, d.created_at, r.settled_at, d.next_attempt_at
		FROM outbox_detoured d
		WHERE d.target = r.target AND d.lane = r.lane AND d.n = r.n AND d.seq > p_after
	) u ORDER BY u.seq LIMIT p_max;
END $$;

-- The last row has the new cursor and nothing else. p_cursor NULL: from now on.
CREATE OR REPLACE FUNCTION outbox_tail(p_cursor text, p_max bigint) RETURNS TABLE (cursor text, d outbox_look)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off SET max_parallel_workers_per_gather = 0
SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	told bigint;
	partial bigint := 0;
	partial_seq bigint := 0;
	lo bigint[] := '{}';
	hi bigint[] := '{}';
	over xid8[] := '{}';
	room bigint := p_max;
	r outbox_receipt;
	i integer;
BEGIN
	IF p_cursor IS NULL THEN
		told := coalesce((SELECT max(o.number) FROM outbox_receipt o), 0);
		-- transactions that are about to commit have drawn one of the last numbers
		SELECT coalesce(array_agg(g), '{}'), coalesce(array_agg(g), '{}'),
			coalesce(array_agg(pg_current_xact_id()), '{}') INTO lo, hi, over
			FROM generate_series(greatest(told - outbox_gaps_max(), 1), told) g
			WHERE NOT EXISTS (SELECT FROM outbox_receipt o WHERE o.number = g);
		room := 0;
	ELSE
		told := split_part(split_part(p_cursor, ',', 1), ':', 1);
		partial := split_part(split_part(p_cursor, ',', 1), ':', 2);
		partial_seq := split_part(split_part(p_cursor, ',', 1), ':', 3);
		SELECT coalesce(array_agg(split_part(g, '-', 1)::bigint), '{}'),
			coalesce(array_agg(split_part(split_part(g, '@', 1), '-', 2)::bigint), '{}'),
			coalesce(array_agg(split_part(g, '@', 2)::xid8), '{}') INTO lo, hi, over
			FROM unnest((string_to_array(p_cursor, ','))[2:]) g;
	END IF;

	FOR r IN SELECT (q.o).* FROM (
			(SELECT 1 AS step, o FROM outbox_receipt o WHERE o.number = partial)
			UNION ALL
			(SELECT 2, o FROM unnest(lo, hi) g(lo, hi) JOIN outbox_receipt o ON o.number BETWEEN g.lo AND g.hi)
			UNION ALL
			(SELECT 3, o FROM outbox_receipt o WHERE o.number > told ORDER BY o.number LIMIT p_max)
		) q WHERE p_cursor IS NOT NULL ORDER BY q.step, (q.o).number
	LOOP
		EXIT WHEN room = 0;
		IF r.number > told THEN
			IF r.number > told + 1 THEN
				EXIT WHEN cardinality(lo) >= outbox_gaps_max();
				lo := lo || (told + 1);
				hi := hi || (r.number - 1);
				over := over || pg_current_xact_id();
			END IF;
			told := r.number;
		ELSIF r.number <> partial THEN -- a gap has one number less
			i := (SELECT g.i FROM unnest(lo, hi) WITH ORDINALITY g(lo, hi, i) WHERE r.number BETWEEN g.lo AND g.hi);
			lo := lo || (r.number + 1);
			hi := hi || hi[i];
			over := over || over[i];
			hi[i] := r.number - 1;
		END IF;
		IF r.number <> partial THEN
			partial := r.number;
			partial_seq := 0;
		END IF;
		FOR d IN SELECT * FROM outbox_settled_with(r, partial_seq, room + 1) LOOP
			room := room - 1;
			EXIT WHEN room < 0;
			RETURN NEXT;
			partial_seq := d.seq;
		END LOOP;
		EXIT WHEN room < 0;
		partial := 0;
		partial_seq := 0;
	END LOOP;

	d := NULL;
	cursor := concat_ws(',', told || ':' || partial || ':' || partial_seq, (
		SELECT string_agg(g.lo || '-' || g.hi || '@' || g.over, ',' ORDER BY g.lo) FROM unnest(lo, hi, over) g(lo, hi, over)
		WHERE g.lo <= g.hi AND g.over > pg_snapshot_xmin(pg_current_snapshot())));
	RETURN NEXT;
END $$;
