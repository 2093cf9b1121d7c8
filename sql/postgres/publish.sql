-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: publishing by function call.
--
-- These functions run with their owner's rights, so that a publisher needs none on the table. Compared with a
-- plain INSERT, an id that is already in the log is reported and is not an error, and a key can be locked.

-- Locks keys until the transaction ends, in one order for all callers. Two keys may share a number, which only costs
-- a wait.
CREATE OR REPLACE FUNCTION outbox_lock_keys(p_keys text[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	number bigint;
BEGIN
	FOR number IN SELECT DISTINCT hashtextextended(current_schema() || '.' || k, -4) FROM unnest(p_keys) k
			WHERE k IS NOT NULL ORDER BY 1 LOOP
		PERFORM pg_advisory_xact_lock(number);
	END LOOP;
END $$;

-- Where the messages with these ids are. p_first: the lowest seq that this call has written, or NULL.
CREATE OR REPLACE FUNCTION outbox_find_published(p_ids text[], p_first bigint) RETURNS SETOF outbox_published
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
BEGIN
	RETURN QUERY
		SELECT i.id, m.seq, p_first IS NULL OR m.seq < p_first OR m.xid <> pg_current_xact_id()
			OR row_number() OVER (PARTITION BY i.id ORDER BY i.place) > 1
		FROM unnest(p_ids) WITH ORDINALITY i(id, place)
		LEFT JOIN LATERAL (SELECT o.xid, o.seq FROM outbox_message o WHERE o.id = i.id
			UNION ALL SELECT k.xid, k.seq FROM outbox_kept k WHERE k.id = i.id LIMIT 1) m ON true
		ORDER BY i.place;
END $$;

-- A log in partitions has no unique index on ids: the ids that callers gave are kept in a separate table. Which are
-- new? Waits for others that publish the same id, as a unique index does. NULL: the index decides.
CREATE OR REPLACE FUNCTION outbox_reserve_ids(p_ids text[], p_given boolean[]) RETURNS boolean[]
LANGUAGE plpgsql SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	fresh text[];
BEGIN
	IF NOT EXISTS (SELECT FROM outbox_meta WHERE name = 'partitioned') THEN
		RETURN NULL;
	END IF;
	WITH made AS (
		INSERT INTO outbox_id AS o (id, seq)
		SELECT i.id, outbox_log_end() + 1 FROM unnest(p_ids, p_given) i(id, given) WHERE i.given
		GROUP BY i.id ORDER BY i.id
		ON CONFLICT DO NOTHING RETURNING o.id)
	SELECT coalesce(array_agg(made.id), '{}') INTO fresh FROM made;
	RETURN ARRAY(SELECT NOT i.given OR (f.id IS NOT NULL AND row_number() OVER (PARTITION BY i.id ORDER BY i.place) = 1)
		FROM unnest(p_ids, p_given) WITH ORDINALITY i(id, given, place) LEFT JOIN unnest(fresh) f(id) ON f.id = i.id
		ORDER BY i.place);
END $$;

-- All or none of several messages, in order: every array has an element for each. A NULL id: a new one;
-- p_given: the id is the caller's, not made for this call. A message whose id is already in the log, or occurred earlier
-- in the same call, is not written again.
CREATE OR REPLACE FUNCTION outbox_publish_batch(p_ids text[], p_types text[], p_keys text[], p_kinds text[], p_published boolean[],
	p_priorities integer[], p_event_times timestamptz[], p_dues timestamptz[], p_expiries timestamptz[],
	p_content_types text[], p_sources text[], p_subjects text[], p_topics text[], p_correlation_ids text[],
	p_causation_ids text[], p_traceparents text[], p_headers text[], p_payloads text[], p_payload_bins bytea[],
	p_given boolean[], p_lock_keys boolean, p_now timestamptz) RETURNS SETOF outbox_published
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET row_security = off AS $$
DECLARE
	ids text[] := p_ids;
	fresh boolean[];
	seqs bigint[];
	found outbox_published;
BEGIN
	IF p_lock_keys THEN
		PERFORM outbox_lock_keys(p_keys);
	END IF;
	fresh := outbox_reserve_ids(p_ids, p_given);
	IF array_position(ids, NULL) IS NOT NULL THEN
		ids := ARRAY(SELECT coalesce(i.id, outbox_uuid()) FROM unnest(ids) WITH ORDINALITY i(id, place) ORDER BY place);
	END IF;
	WITH written AS (
		INSERT INTO outbox_message AS o (id, type, key, kind, published, priority, created_at, event_time, due_at,
			expires_at, content_type, source, subject, topic, correlation_id, causation_id, traceparent, headers,
			payload, payload_bin)
		SELECT i.id, i.type, i.key, i.kind, i.published,
			CASE WHEN i.priority BETWEEN -999 AND 999 THEN i.priority WHEN i.priority IS NOT NULL THEN 999 END,
			t.now, coalesce(i.event_time, t.now), i.due_at, i.expires_at, i.content_type, i.source, i.subject, i.topic,
			i.correlation_id, i.causation_id, i.traceparent, i.headers, i.payload, i.payload_bin
		FROM unnest(ids, p_types, p_keys, p_kinds, p_published, p_priorities, p_event_times, p_dues, p_expiries,
			p_content_types, p_sources, p_subjects, p_topics, p_correlation_ids, p_causation_ids, p_traceparents,
			p_headers, p_payloads, p_payload_bins) WITH ORDINALITY
			i(id, type, key, kind, published, priority, event_time, due_at, expires_at, content_type, source, subject,
				topic, correlation_id, causation_id, traceparent, headers, payload, payload_bin, place)
		CROSS JOIN (SELECT outbox_now(p_now) AS now) t
		WHERE fresh IS NULL OR fresh[i.place]
		ORDER BY i.place
		ON CONFLICT DO NOTHING
		RETURNING o.seq
	)
	SELECT array_agg(w.seq ORDER BY w.seq) INTO seqs FROM written w;
	IF cardinality(seqs) = cardinality(ids) THEN
		RETURN QUERY SELECT i.id, i.seq, false FROM unnest(ids, seqs) i(id, seq);
		RETURN;
	END IF;
	FOR found IN SELECT * FROM outbox_find_published(ids, seqs[1]) LOOP
		IF found.seq IS NULL AND outbox_log_end() < (SELECT max(seq) FROM outbox_message) THEN
			RAISE EXCEPTION 'the log''s sequence is behind its last message: it was reset; run: outbox realign'
				USING ERRCODE = 'OB004';
		ELSIF found.seq IS NULL THEN
			RAISE EXCEPTION 'the message with id "%" was removed from the log just now; try again', found.id
				USING ERRCODE = 'serialization_failure';
		END IF;
		RETURN NEXT found;
	END LOOP;
END $$;

-- One message, without the detour by arrays. Where it is not written, because its id is in the log already or the log's
-- sequence was reset, outbox_publish_batch() finds out why; so it does with an id for a log in partitions.
CREATE OR REPLACE FUNCTION outbox_publish_one(p_id text, p_type text, p_key text, p_kind text, p_published boolean,
	p_priority integer, p_event_time timestamptz, p_due_at timestamptz, p_expires_at timestamptz, p_content_type text,
	p_source text, p_subject text, p_topic text, p_correlation_id text, p_causation_id text, p_traceparent text,
	p_headers text, p_payload text, p_payload_bin bytea, p_lock_key boolean) RETURNS outbox_published
LANGUAGE plpgsql AS $$
DECLARE
	now timestamptz;
	made outbox_published;
BEGIN
	IF p_lock_key THEN
		PERFORM outbox_lock_keys(ARRAY[p_key]);
	END IF;
	IF p_id IS NULL OR NOT EXISTS (SELECT FROM outbox_meta WHERE name = 'partitioned') THEN
		now := clock_timestamp();
		INSERT INTO outbox_message AS o (id, type, key, kind, published, priority, created_at, event_time, due_at,
			expires_at, content_type, source, subject, topic, correlation_id, causation_id, traceparent, headers,
			payload, payload_bin)
		VALUES (coalesce(p_id, outbox_uuid()), p_type, p_key, p_kind, p_published,
			CASE WHEN p_priority BETWEEN -999 AND 999 THEN p_priority WHEN p_priority IS NOT NULL THEN 999 END,
			now, coalesce(p_event_time, now), p_due_at, p_expires_at, p_content_type, p_source, p_subject, p_topic,
			p_correlation_id, p_causation_id, p_traceparent, p_headers, p_payload, p_payload_bin)
		ON CONFLICT DO NOTHING
		RETURNING o.id, o.seq, false INTO made;
	END IF;
	IF made.seq IS NULL THEN
		SELECT * INTO made FROM outbox_publish_batch(ARRAY[p_id], ARRAY[p_type], ARRAY[p_key], ARRAY[p_kind],
			ARRAY[p_published], ARRAY[p_priority], ARRAY[p_event_time], ARRAY[p_due_at], ARRAY[p_expires_at],
			ARRAY[p_content_type], ARRAY[p_source], ARRAY[p_subject], ARRAY[p_topic], ARRAY[p_correlation_id],
			ARRAY[p_causation_id], ARRAY[p_traceparent], ARRAY[p_headers], ARRAY[p_payload], ARRAY[p_payload_bin],
			ARRAY[p_id IS NOT NULL], false, NULL);
	END IF;
	RETURN made;
END $$;

-- One message:
--     SELECT outbox_publish('order.placed', '{"id":42}', key => '42');
--     SELECT id, seq, repeated FROM outbox_publish('order.placed', '{"id":42}', id => 'order-42-placed');
-- A literal, or a driver's parameter without a type, is text: PostgreSQL prefers it. lock_key: others who publish
-- with this key and lock_key wait until your transaction ends. Not in SQL: its text would be parsed anew for every call.
CREATE OR REPLACE FUNCTION outbox_publish(type text, payload text,
	key text DEFAULT NULL, headers jsonb DEFAULT NULL, id text DEFAULT NULL, kind text DEFAULT NULL,
	source text DEFAULT NULL, subject text DEFAULT NULL, topic text DEFAULT NULL, correlation_id text DEFAULT NULL,
	causation_id text DEFAULT NULL, traceparent text DEFAULT NULL, published boolean DEFAULT NULL,
	priority integer DEFAULT NULL, event_time timestamptz DEFAULT NULL, due_at timestamptz DEFAULT NULL,
	expires_at timestamptz DEFAULT NULL, content_type text DEFAULT NULL, lock_key boolean DEFAULT false)
RETURNS outbox_published
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	RETURN outbox_publish_one(id, type, key, kind, published, priority, event_time, due_at, expires_at, content_type, source,
		subject, topic, correlation_id, causation_id, traceparent, headers::text, payload, NULL, lock_key);
END $$;

-- The payload may be json, jsonb (as PostgreSQL writes it) or bytea as well.
CREATE OR REPLACE FUNCTION outbox_publish(type text, payload json,
	key text DEFAULT NULL, headers jsonb DEFAULT NULL, id text DEFAULT NULL, kind text DEFAULT NULL,
	source text DEFAULT NULL, subject text DEFAULT NULL, topic text DEFAULT NULL, correlation_id text DEFAULT NULL,
	causation_id text DEFAULT NULL, traceparent text DEFAULT NULL, published boolean DEFAULT NULL,
	priority integer DEFAULT NULL, event_time timestamptz DEFAULT NULL, due_at timestamptz DEFAULT NULL,
	expires_at timestamptz DEFAULT NULL, content_type text DEFAULT NULL, lock_key boolean DEFAULT false)
RETURNS outbox_published
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	RETURN outbox_publish_one(id, type, key, kind, published, priority, event_time, due_at, expires_at, content_type, source,
		subject, topic, correlation_id, causation_id, traceparent, headers::text, payload::text, NULL, lock_key);
END $$;

CREATE OR REPLACE FUNCTION outbox_publish(type text, payload jsonb,
	key text DEFAULT NULL, headers jsonb DEFAULT NULL, id text DEFAULT NULL, kind text DEFAULT NULL,
	source text DEFAULT NULL, subject text DEFAULT NULL, topic text DEFAULT NULL, correlation_id text DEFAULT NULL,
	causation_id text DEFAULT NULL, traceparent text DEFAULT NULL, published boolean DEFAULT NULL,
	priority integer DEFAULT NULL, event_time timestamptz DEFAULT NULL, due_at timestamptz DEFAULT NULL,
	expires_at timestamptz DEFAULT NULL, content_type text DEFAULT NULL, lock_key boolean DEFAULT false)
RETURNS outbox_published
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	RETURN outbox_publish_one(id, type, key, kind, published, priority, event_time, due_at, expires_at, content_type, source,
		subject, topic, correlation_id, causation_id, traceparent, headers::text, payload::text, NULL, lock_key);
END $$;

CREATE OR REPLACE FUNCTION outbox_publish(type text, payload bytea,
	key text DEFAULT NULL, headers jsonb DEFAULT NULL, id text DEFAULT NULL, kind text DEFAULT NULL,
	source text DEFAULT NULL, subject text DEFAULT NULL, topic text DEFAULT NULL, correlation_id text DEFAULT NULL,
	causation_id text DEFAULT NULL, traceparent text DEFAULT NULL, published boolean DEFAULT NULL,
	priority integer DEFAULT NULL, event_time timestamptz DEFAULT NULL, due_at timestamptz DEFAULT NULL,
	expires_at timestamptz DEFAULT NULL, content_type text DEFAULT NULL, lock_key boolean DEFAULT false)
RETURNS outbox_published
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
	RETURN outbox_publish_one(id, type, key, kind, published, priority, event_time, due_at, expires_at, content_type, source,
		subject, topic, correlation_id, causation_id, traceparent, headers::text, NULL, payload, lock_key);
END $$;
