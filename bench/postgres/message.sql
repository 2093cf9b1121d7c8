-- The same with a message of 300 bytes.
\set k random(1, 10000)
BEGIN;
INSERT INTO business (customer, total, note) VALUES (:k, 99.5, 'an order of the benchmark');
INSERT INTO outbox_message (type, key, payload) VALUES ('bench.message', 'key-' || :k,
	'{"order":1,"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}');
COMMIT;
