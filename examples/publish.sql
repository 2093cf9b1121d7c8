-- Publishing from any tool that speaks SQL: one INSERT in your own transaction.
--   outbox init --store sqlite:app.db && sqlite3 app.db < examples/publish.sql
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, total REAL NOT NULL);

BEGIN;
INSERT INTO orders (id, total) VALUES (42, 99.5);
INSERT INTO outbox_message (type, key, payload)
VALUES ('order.placed', '42', '{"id":42,"total":99.5}');
COMMIT;

-- Everything but type and the payload is optional. This one waits for five minutes (times are
-- microseconds since 1970 UTC) and carries a header and the id of the message that caused it.
BEGIN;
INSERT INTO outbox_message (type, key, payload, headers, causation_id, due_at)
SELECT 'order.reminder', '42', '{"id":42}', '{"tenant":"north"}', id, created_at + 5 * 60 * 1000000
FROM outbox_message WHERE type = 'order.placed' AND key = '42';
COMMIT;

-- Rolled back: neither the order nor its message ever existed.
BEGIN;
INSERT INTO orders (id, total) VALUES (43, 12.0);
INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', '43', '{"id":43}');
ROLLBACK;
