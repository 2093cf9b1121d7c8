-- The same with a row of the same content in a plain table.
\set k random(1, 10000)
BEGIN;
INSERT INTO business (customer, total, note) VALUES (:k, 99.5, 'an order of the benchmark');
INSERT INTO plain (xid, slot, id, type, key, created_at, event_time, payload) VALUES ('7', 7,
	'01a1ed47-ea4e-7418-b14e-f87b2d725cab', 'bench.message', 'key-' || :k, now(), now(),
	'{"order":1,"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}');
COMMIT;
