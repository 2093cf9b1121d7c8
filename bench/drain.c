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

/* The payload goes to a file, synced once a batch. */
struct appender {
	struct db_each base;
	int fd;
};

static void append_row(struct db_each *each, sqlite3_stmt *row)
{
	struct appender *a = (struct appender *)each;

	db_touch(row);
	if (write(a->fd, sqlite3_column_text(row, COLUMN_PAYLOAD), 300) != 300)
		die("write", "short write");
}

static void append_end(struct db_each *each)
{
	if (fdatasync(((struct appender *)each)->fd) < 0)
		die("fdatasync", "failed");
}

static double raw(sqlite3 *db, const char *file, int batch, int messages)
{
	struct appender appender = { .base = { .row = append_row, .end = append_end }, .fd = -1 };
	double rate;

	if (!file)
		return db_raw_pass(db, true, batch, messages, NULL);
	appender.fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (appender.fd < 0)
		die(file, "cannot be opened");
	rate = db_raw_pass(db, true, batch, messages, &appender.base);
	close(appender.fd);
	return rate;
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
