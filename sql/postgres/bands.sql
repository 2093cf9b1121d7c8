-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: bands of priority (above 0 high, 0 or NULL normal, below 0 low).
--
-- outbox_route.bands says which bands a version of a target's routing takes, in pairs: a place in the log, and what is
-- taken after it (1 high + 2 normal + 4 low; 8 none), up to the next place. The first place does not matter to readers:
-- it is where a new family began. NULL means a target without bands, which is read without any of this.

CREATE OR REPLACE FUNCTION outbox_bands_take(bands bigint[], priority integer, seq bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	i integer := cardinality(bands);
BEGIN
	WHILE i > 2 AND seq <= bands[i - 1] LOOP
		i := i - 2;
	END LOOP;
	RETURN bands[i] & CASE WHEN priority > 0 THEN 1 WHEN priority < 0 THEN 4 ELSE 2 END <> 0;
END $$;

-- ---- families ----------------------------------------------------------------------------------------------
--
-- A family has one target for each band. src/core/bands.h has the rules; tests/contract/store_contract_bands.c checks
-- both.

-- A target's current family and bands; bands NULL: all of them.
CREATE OR REPLACE FUNCTION outbox_bands_of(p_target text, OUT there boolean, OUT family text, OUT bands bigint[])
LANGUAGE plpgsql STABLE AS $$
BEGIN
	there := false;
	SELECT true, t.band_of, r.bands
		INTO there, family, bands
		FROM outbox_target t JOIN outbox_route r ON r.target = t.name AND r.version = t.version
		WHERE t.name = p_target;
	there := coalesce(there, false);
END $$;

CREATE OR REPLACE FUNCTION outbox_last_place(bands bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
	SELECT coalesce(bands[cardinality(bands) - 1], 0)
$$;

-- Add bands that apply from a place on.
CREATE OR REPLACE FUNCTION outbox_bands_add(bands bigint[], above bigint, mask bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	result bigint[] := coalesce(bands, '{0,7}');
BEGIN
	IF coalesce(bands[cardinality(bands)], 7) = mask THEN
		RETURN bands;
	END IF;
	IF cardinality(result) = 2 THEN
		result[1] := 0;
	END IF;
	-- nothing was published since the last change: it had no effect
	IF result[cardinality(result) - 1] >= above THEN
		result := result[1 : cardinality(result) - 2];
	END IF;
	IF cardinality(result) >= 128 THEN
		RAISE EXCEPTION 'bands: they were switched on and off 63 times, and no further change can be recorded; leave them as they are, or drop the target'
			USING ERRCODE = 'OB006';
	END IF;
	RETURN result || ARRAY[above, mask];
END $$;

-- The bands of a target that is registered with these.
CREATE OR REPLACE FUNCTION outbox_bands_next(p_target text, p_bands integer, p_family text, p_start integer) RETURNS bigint[]
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	known record;
	leader record;
	mask bigint := coalesce(nullif(p_bands, 0), 7);
	place bigint;
BEGIN
	known := outbox_bands_of(p_target);
	IF known.there AND known.family IS NOT NULL AND known.family <> coalesce(p_family, p_target) THEN
		RAISE EXCEPTION 'this name belongs to a band of target "%"; choose another name, or drop it first: outbox target drop %',
			known.family, p_target USING ERRCODE = 'OB006';
	ELSIF known.there AND known.family IS NULL AND p_family <> p_target THEN
		RAISE EXCEPTION 'this name is needed for a band of target "%", but another target has it; rename one of the two, or drop this one: outbox target drop %',
			p_family, p_target USING ERRCODE = 'OB006';
	END IF;
	IF p_family <> p_target THEN
		leader := outbox_bands_of(p_family);
		IF NOT leader.there OR (mask <> 8 AND leader.family IS NULL) THEN
			RAISE EXCEPTION 'it is a band of target "%", which is not registered with bands; register that one first',
				p_family USING ERRCODE = 'OB006';
		END IF;
		place := outbox_last_place(leader.bands);
		RETURN CASE WHEN known.there THEN outbox_bands_add(known.bands, place, mask)
			WHEN cardinality(leader.bands) > 2 THEN ARRAY[0, 8, place, mask] ELSE ARRAY[place, mask] END;
	ELSIF known.there AND (p_family IS NOT NULL OR known.family IS NOT NULL OR cardinality(known.bands) > 2) THEN
		RETURN outbox_bands_add(known.bands, outbox_log_end(), mask);
	ELSIF mask <> 7 THEN
		-- the place: for the others of its family, which start where it did
		RETURN ARRAY[CASE WHEN p_start = 2 AND NOT known.there THEN outbox_log_end() ELSE 0 END, mask];
	END IF;
	RETURN NULL;
END $$;

-- The same, with locks that last until it is registered.
CREATE OR REPLACE FUNCTION outbox_bands_plan(p_target text, p_bands integer, p_family text, p_start integer) RETURNS bigint[]
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	PERFORM outbox_note_end();
	IF NOT EXISTS (SELECT FROM outbox_target WHERE name = p_target) THEN
		PERFORM outbox_janitor_lock(true);
	END IF;
	IF p_family <> p_target THEN
		PERFORM outbox_lock_lane(p_family, -2);
	END IF;
	PERFORM outbox_lock_lane(p_target, -2);
	RETURN outbox_bands_next(p_target, p_bands, p_family, p_start);
END $$;

-- Programs of versions 2 and 3 pass KIND {BANDS} from this to outbox_target_put(), which splits it; KIND is *, event or
-- command.
CREATE OR REPLACE FUNCTION outbox_band_kind(p_target text, p_kind text, p_bands integer, p_family text, p_start integer)
RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	bands bigint[] := outbox_bands_plan(p_target, p_bands, p_family, p_start);
BEGIN
	RETURN CASE WHEN bands IS NULL THEN p_kind ELSE coalesce(p_kind, '*') || ' ' || bands::text END;
END $$;

-- Where its registration lets it start: a band whose place is known starts at the oldest message, and
-- outbox_band_note() sets its floor.
CREATE OR REPLACE FUNCTION outbox_band_start(p_start integer, p_target text, p_family text) RETURNS integer
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	IF p_family <> p_target AND (p_start = 0 OR outbox_last_place((outbox_bands_of(p_family)).bands) > 0) THEN
		RETURN 1;
	END IF;
	RETURN p_start;
END $$;

-- This one gets nothing new and keeps what it has.
CREATE OR REPLACE FUNCTION outbox_band_end(p_target text, p_place bigint) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	known record;
BEGIN
	PERFORM outbox_lock_lane(p_target, -2);
	PERFORM outbox_lock_lanes(p_target);
	known := outbox_bands_of(p_target);
	INSERT INTO outbox_route (target, version, types, kind, published_only, bands, headers)
		SELECT r.target, r.version + 1, r.types, r.kind, r.published_only, outbox_bands_add(known.bands, p_place, 8), r.headers
		FROM outbox_target t JOIN outbox_route r ON r.target = t.name AND r.version = t.version WHERE t.name = p_target;
	UPDATE outbox_target SET version = version + 1,
		route = regexp_replace(route, ',"priority":[[][^]]*[]]}$', ',"priority":["none"]}')
		WHERE name = p_target;
END $$;

-- A new band of a family that had bands from the beginning starts exactly where its first target did: what was
-- published then and not yet committed is for both. False: too long ago to know, or the family was made later.
CREATE OR REPLACE FUNCTION outbox_band_follow(p_target text, p_family text) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	IF cardinality((outbox_bands_of(p_family)).bands) > 2 OR EXISTS (SELECT FROM outbox_lane l
			WHERE l.target = p_family AND NOT EXISTS (SELECT FROM outbox_receipt f
				WHERE f.target = p_family AND f.lane = l.lane AND f.n = 1
					AND f.floor = (outbox_last_receipt(p_family, l.lane)).floor)) THEN -- otherwise it was realigned
		RETURN false;
	END IF;
	UPDATE outbox_target SET start = (SELECT start FROM outbox_target WHERE name = p_family) WHERE name = p_target;
	UPDATE outbox_receipt r SET prev = f.prev, prev_seq = f.prev_seq, prev_xid = f.prev_xid,
		cur = f.cur, cur_seq = f.cur_seq, cur_xid = f.cur_xid, pos = f.pos, claim_end = f.pos, floor = f.floor
		FROM outbox_receipt f
		WHERE r.target = p_target AND r.n = 1 AND f.target = p_family AND f.lane = r.lane AND f.n = 1;
	RETURN true;
END $$;

-- The target was registered with this version: record its family, and end the bands that it had until now.
CREATE OR REPLACE FUNCTION outbox_band_note(p_target text, p_family text, p_version bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	known record := outbox_bands_of(p_target);
	place bigint;
	other text;
BEGIN
	IF known.family IS NOT DISTINCT FROM p_family THEN
		RETURN p_version;
	END IF;
	IF p_family <> p_target THEN
		place := outbox_last_place(known.bands);
		IF NOT outbox_band_follow(p_target, p_family) AND place > 0 THEN
			UPDATE outbox_receipt SET floor = place WHERE target = p_target AND n = 1;
		END IF;
	ELSIF p_family IS NULL AND known.family = p_target THEN
		FOR other IN SELECT name FROM outbox_target WHERE band_of = p_target AND name <> p_target ORDER BY name LOOP
			PERFORM outbox_band_end(other, outbox_last_place(known.bands));
		END LOOP;
	END IF;
	UPDATE outbox_target SET band_of = p_family WHERE name = p_target;
	RETURN p_version;
END $$;

-- Which of NAME-high (1) and NAME-low (4) are bands of this target?
CREATE OR REPLACE FUNCTION outbox_bands(p_target text) RETURNS integer
LANGUAGE sql STABLE SET search_path FROM CURRENT SET row_security = off AS $$
	SELECT coalesce(sum(CASE name WHEN p_target || '-high' THEN 1 WHEN p_target || '-low' THEN 4 ELSE 0 END), 0)::integer
	FROM outbox_target WHERE band_of = p_target
$$;
