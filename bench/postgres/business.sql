-- A business transaction without a message.
\set k random(1, 10000)
BEGIN;
INSERT INTO business (customer, total, note) VALUES (:k, 99.5, 'an order of the benchmark');
COMMIT;
