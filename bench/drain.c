/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Draining: the whole relay beside a bare loop that reads the same columns of the same rows and
 * writes one receipt per batch, in the same file and with the same settings. Every pass of ours is a
 * target of its own that starts at the oldest message, so that the log need not be written again.
 */

#include "bench.h"

#include <outbox/outbox.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What every message has is read into this, so that no read can be left out. */
static volatile int64_t sink;

static double ours(const char *path, const char *to, int batch, int messages)
{
	static int pass;
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;
	char store[600], name[32];
	double start, seconds;

	snprintf(store, sizeof(store), "sqlite:%s", path);
	snprintf(name, sizeof(name), "pass-%d", pass++);
	target.name = name;
	target.to = to;
	target.start = OUTBOX_START_OLDEST;
	config.store = store;
	config.targets = &target;
	config.n_targets = 1;
	config.batch_messages = (size_t)batch;
	config.purge_interval = OUTBOX_NEVER;
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK)
		die("relay", err.message);
	start = now_seconds();
	if (outbox_relay_run_once(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	seconds = now_seconds() - start;
	outbox_relay_counts(relay, &counts);
	outbox_relay_free(relay);
	if (counts.delivered != (uint64_t)messages)
		die("drain", "not every message was delivered");
	return messages / seconds;
}

#define COLUMNS                                                                                    \
	"seq, id, type, kind, source, subject, topic, key, content_type, headers, correlation_id," \
	" causation_id, traceparent, published, priority, event_time, created_at, due_at,"         \
	" expires_at, payload, payload_bin"

/* Read every column of a row; the payload also goes to fd, when there is one. */
static void take_row(sqlite3_stmt *row, int fd)
{
	int columns = sqlite3_column_count(row);

	for (int c = 0; c < columns; c++) {
		if (sqlite3_column_type(row, c) == SQLITE_INTEGER)
			sink += sqlite3_column_int64(row, c);
		else if (sqlite3_column_text(row, c))
			sink += sqlite3_column_bytes(row, c);
	}
	if (fd >= 0 && write(fd, sqlite3_column_text(row, 19), 300) != 300)
		die("write", "short write");
}

static int raw_batch(sqlite3_stmt *rows, int64_t *pos, int batch, int fd)
{
	int taken = 0;

	sqlite3_bind_int64(rows, 1, *pos);
	sqlite3_bind_int(rows, 2, batch);
	while (sqlite3_step(rows) == SQLITE_ROW) {
		*pos = sqlite3_column_int64(rows, 0);
		take_row(rows, fd);
		taken++;
	}
	sqlite3_reset(rows);
	if (fd >= 0 && fdatasync(fd) < 0)
		die("fdatasync", "failed");
	return taken;
}

static double raw(sqlite3 *db, const char *file, int batch, int messages)
{
	static int64_t n;
	sqlite3_stmt *rows = db_prepare(db, "SELECT " COLUMNS " FROM outbox_message WHERE seq > ?"
					    " ORDER BY seq LIMIT ?");
	sqlite3_stmt *receipt =
		db_prepare(db,
			   "INSERT INTO outbox_receipt (target, lane, n, token, owner, settled_at,"
			   " route_version, from_seq, pos, claim_end, claim_count, delivered)"
			   " VALUES ('raw', 0, ?, ?, 'raw', ?, 1, ?, ?, ?, ?, ?)");
	sqlite3_stmt *begin = db_prepare(db, "BEGIN IMMEDIATE"), *commit = db_prepare(db, "COMMIT");
	int fd = file ? open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	double start = now_seconds(), seconds;
	int64_t pos = 0, from = 0;
	int taken, total = 0;

	do {
		db_done(db, begin);
		taken = raw_batch(rows, &pos, batch, fd);
		sqlite3_bind_int64(receipt, 1, ++n);
		sqlite3_bind_int64(receipt, 2, n * 7919);
		sqlite3_bind_int64(receipt, 3, n * 1000);
		sqlite3_bind_int64(receipt, 4, from);
		sqlite3_bind_int64(receipt, 5, pos);
		sqlite3_bind_int64(receipt, 6, pos);
		sqlite3_bind_int(receipt, 7, taken);
		sqlite3_bind_int(receipt, 8, taken);
		db_done(db, receipt);
		db_done(db, commit);
		from = pos;
		total += taken;
	} while (taken == batch);
	seconds = now_seconds() - start;
	sqlite3_finalize(rows);
	sqlite3_finalize(receipt);
	sqlite3_finalize(begin);
	sqlite3_finalize(commit);
	if (fd >= 0)
		close(fd);
	if (total != messages)
		die("raw drain", "not every message was read");
	return messages / seconds;
}

static void compare(const char *path, int batch, bool to_file, const struct sizes *sizes)
{
	struct series mine = { 0 }, limit = { 0 };
	char raw_file[600], to[640], out[600];
	sqlite3 *db = db_open(path);
	int messages = (int)db_number(db, "SELECT count(*) FROM outbox_message");

	snprintf(raw_file, sizeof(raw_file), "%s.raw", path);
	snprintf(out, sizeof(out), "%s.out", path);
	if (to_file)
		snprintf(to, sizeof(to), "file:%s", out);
	else
		snprintf(to, sizeof(to), "null:");
	for (int i = 0; i < sizes->repeats; i++) {
		bool first = i % 2 == 0;

		if (first)
			series_add(&mine, ours(path, to, batch, messages));
		db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
		series_add(&limit, raw(db, to_file ? raw_file : NULL, batch, messages));
		db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
		if (!first)
			series_add(&mine, ours(path, to, batch, messages));
		unlink(out);
	}
	unlink(raw_file);
	sqlite3_close(db);
	report("drain", to_file ? "file:" : "null:", batch, &mine, &limit);
}

void bench_drain(const char *path, const struct sizes *sizes)
{
	static const int batches[] = { 50, 200, 500, 1000 };
	sqlite3 *db = db_open(path);

	fill(db, sizes->drain_messages);
	sqlite3_close(db);
	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++)
		compare(path, batches[i], false, sizes);
	compare(path, 500, true, sizes);
}
