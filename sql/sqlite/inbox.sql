-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on SQLite: the inbox, with which a consumer processes each message once. It is not part of the outbox's schema
-- and has no version of it: it is made by `outbox init --inbox` in the consumer's own database, with or without an outbox.
-- Run again it changes nothing.

-- What each consumer has accepted. In the consumer's own transaction, before its work:
--     INSERT INTO outbox_inbox (consumer, id) VALUES ('billing', ?) ON CONFLICT DO NOTHING;
-- One row changed: the first time. None: a repeat. Never INSERT OR REPLACE, which changes a row each time.
CREATE TABLE IF NOT EXISTS outbox_inbox (
	consumer TEXT NOT NULL
		CONSTRAINT "consumer is text of 1 to 255 characters"
		CHECK (typeof(consumer) = 'text' AND length(consumer) BETWEEN 1 AND 255 AND instr(consumer, char(0)) = 0),
	id TEXT NOT NULL -- the message's
		CONSTRAINT "id is text of 1 to 255 characters"
		CHECK (typeof(id) = 'text' AND length(id) BETWEEN 1 AND 255 AND instr(id, char(0)) = 0),
	-- in microseconds since 1970
	received_at INTEGER NOT NULL
		DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000)
		CONSTRAINT "received_at is in microseconds since 1970, an integer"
		CHECK (typeof(received_at) = 'integer'),
	PRIMARY KEY (consumer, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS outbox_inbox_received ON outbox_inbox (received_at);
