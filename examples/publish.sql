-- How to publish with plain SQL, here on SQLite: one INSERT in your own transaction.
--   outbox init --store sqlite:app.db && sqlite3 -bail app.db < examples/publish.sql
-- -bail: without it the sqlite3 shell goes on after an error, and commits what is left of a transaction.

-- Wait while another process writes: SQLite allows one writer at a time, and the relay also writes.
-- (Without this the sqlite3 shell fails at once with "database is locked".)
.bail on
.timeout 5000

CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, total REAL NOT NULL);

BEGIN;
INSERT INTO orders (id, total) VALUES (142, 99.5);
INSERT INTO outbox_message (type, key, payload)
VALUES ('order.placed', '142', '{"id":142,"total":99.5}');
COMMIT;

-- Everything but type and the payload is optional. This one waits for five minutes (times are
-- microseconds since 1970 UTC) and carries a header and the id of the message that caused it.
BEGIN;
INSERT INTO outbox_message (type, key, payload, headers, causation_id, due_at)
SELECT 'order.reminder', '142', '{"id":142}', '{"tenant":"north"}', id, created_at + 5 * 60 * 1000000
FROM outbox_message WHERE type = 'order.placed' AND key = '142';
COMMIT;

-- Text in payload is JSON unless content_type says otherwise; text that is not JSON then fails at delivery.
-- Bytes go into payload_bin and are application/octet-stream unless content_type says otherwise.
INSERT INTO outbox_message (type, payload, content_type) VALUES ('note.taken', 'call back', 'text/plain');
INSERT INTO outbox_message (type, payload_bin) VALUES ('label.printed', x'00ff10');

-- With an id of your own and ON CONFLICT (id) DO NOTHING a repeat is harmless. INSERT OR REPLACE is refused where
-- the id is there. Do not use INSERT OR IGNORE: it also ignores that a row is invalid, and publishes nothing.
INSERT INTO outbox_message (id, type, key, payload)
VALUES ('order-142-paid', 'order.paid', '142', '{"id":142}') ON CONFLICT (id) DO NOTHING;
INSERT INTO outbox_message (id, type, key, payload)
VALUES ('order-142-paid', 'order.paid', '142', '{"id":142}') ON CONFLICT (id) DO NOTHING;

-- Rolled back: neither the order nor its message ever existed.
BEGIN;
INSERT INTO orders (id, total) VALUES (143, 12.0);
INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', '143', '{"id":143}');
ROLLBACK;
