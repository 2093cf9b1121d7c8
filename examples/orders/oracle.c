/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The oracle knows three independent things: the orders table (what really happened), the consumer's
 * file (what really arrived) and the outbox's own view. It loads the file into a temporary table and
 * compares in SQL; the relay is not asked.
 */

#include "orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t oracle_lines(const struct place *place)
{
	FILE *file = fopen(place->broker, "r");
	int64_t lines = 0;
	int c;

	if (!file)
		return 0;
	while ((c = getc(file)) != EOF)
		lines += c == '\n';
	fclose(file);
	return lines;
}

static void load_line(sqlite3 *db, sqlite3_stmt *insert, int64_t number, const char *line)
{
	sqlite3_reset(insert);
	sqlite3_bind_int64(insert, 1, number);
	sqlite3_bind_text(insert, 2, line, -1, SQLITE_TRANSIENT);
	if (sqlite3_step(insert) != SQLITE_DONE) {
		fprintf(stderr, "orders: consumer's line %lld: %s\n", (long long)number,
			sqlite3_errmsg(db));
		exit(1);
	}
}

/* temp.got: one row per complete line of the consumer's file. */
static void load(sqlite3 *db, const struct place *place)
{
	FILE *file = fopen(place->broker, "r");
	sqlite3_stmt *insert = NULL;
	char *line = NULL;
	size_t capacity = 0;
	ssize_t size;

	shop_exec(db, "DROP TABLE IF EXISTS temp.got");
	shop_exec(db, "CREATE TEMP TABLE got (line INTEGER PRIMARY KEY, json TEXT,"
		      " id TEXT AS (json_extract(json, '$.id')),"
		      " number INTEGER AS (json_extract(json, '$.data.order')),"
		      " customer TEXT AS (json_extract(json, '$.data.customer')))");
	if (!file)
		return;
	sqlite3_prepare_v2(db, "INSERT INTO temp.got (line, json) VALUES (?, json(?))", -1, &insert,
			   NULL);
	for (int64_t number = 1; (size = getline(&line, &capacity, file)) > 0; number++)
		if (line[size - 1] == '\n')
			load_line(db, insert, number, line);
	sqlite3_finalize(insert);
	free(line);
	fclose(file);
}

void oracle_note_kill(sqlite3 *db, const struct place *place)
{
	load(db, place);
	shop_exec(db, "CREATE TEMP TABLE unnoted AS SELECT d.id FROM outbox_delivery d"
		      " WHERE d.state = 'sending' AND d.id IN (SELECT id FROM temp.got)");
}

struct verdict {
	int64_t committed, delivered, waiting, failed, phantom, disorder, duplicates;
};

static struct verdict compare(sqlite3 *db)
{
	struct verdict v;

	v.committed = shop_number(db, "SELECT count(*) FROM orders");
	v.delivered = shop_number(db, "SELECT count(DISTINCT g.id) FROM temp.got g"
				      " JOIN orders o ON o.id = g.number"
				      " JOIN outbox_message m ON m.id = g.id");
	v.waiting = shop_number(
		db, "SELECT count(*) FROM outbox_delivery WHERE state IN ('pending', 'sending')");
	v.failed = shop_number(db, "SELECT count(*) FROM outbox_failed");
	v.phantom =
		shop_number(db, "SELECT count(*) FROM temp.got"
				" WHERE number IS NULL OR number NOT IN (SELECT id FROM orders)");
	/* When an order first arrives, no later order of its customer may have arrived before it. */
	shop_exec(db, "DROP TABLE IF EXISTS temp.first;"
		      "CREATE TEMP TABLE first AS SELECT min(line) AS line, number, customer"
		      " FROM temp.got GROUP BY number, customer");
	v.disorder = shop_number(
		db, "SELECT count(*) FROM temp.first a WHERE EXISTS (SELECT 1 FROM temp.first b"
		    " WHERE b.customer = a.customer AND b.number > a.number AND b.line < a.line)");
	v.duplicates = shop_number(db, "SELECT count(*) - count(DISTINCT id) FROM temp.got");
	return v;
}

static bool expect(bool right, const char *what)
{
	if (!right)
		printf("\n  WRONG: %s\n", what);
	return right;
}

/* &=, not &&: every mistake is reported. */
static bool judge(sqlite3 *db, const struct verdict *v, int64_t unexplained)
{
	bool right = true;

	right &= expect(v->committed == ORDERS - ROLLED_BACK, "some orders were not placed");
	right &= expect(shop_number(db, "SELECT count(*) FROM outbox_message") == v->committed,
			"not one message for each committed order");
	right &= expect(v->delivered + v->waiting + v->failed == v->committed, "a message is lost");
	right &= expect(v->waiting == 0, "messages still wait");
	right &= expect(v->failed == 1, "one message should have failed: the poison");
	right &= expect(shop_number(db, "SELECT json_extract(m.payload, '$.order') FROM outbox_failed f"
					" JOIN outbox_message m ON m.id = f.id") == POISON_ORDER,
			"the failed message is not the poison");
	right &= expect(v->phantom == 0, "something arrived that never happened");
	right &= expect(v->disorder == 0, "a customer's orders arrived out of order");
	right &= expect(unexplained == 0, "a duplicate is not explained");
	right &= expect(shop_number(db, "SELECT count(*) FROM outbox_delivery"
					" WHERE state = 'delivered'") == v->delivered,
			"the outbox and the consumer disagree about what was delivered");
	return right;
}

bool oracle_judge(sqlite3 *db, const struct place *place)
{
	struct verdict v;
	int64_t explained, unexplained;
	char reason[128] = "(none: no acknowledgement was lost)";

	load(db, place);
	shop_exec(db, "CREATE TEMP TABLE IF NOT EXISTS unnoted (id TEXT)");
	v = compare(db);
	explained = shop_number(db, "SELECT count(*) FROM temp.unnoted");
	/* The kill explains one repeat of these messages, but not two, and no repeat of others. */
	unexplained = shop_number(db, "SELECT count(*) FROM (SELECT id, count(*) AS n FROM temp.got"
				      " GROUP BY id) WHERE n > 1"
				      " AND (n > 2 OR id NOT IN (SELECT id FROM temp.unnoted))");
	if (v.duplicates > 0)
		snprintf(reason, sizeof(reason),
			 "(the relay died before it recorded %lld acknowledgement%s)",
			 (long long)explained, explained == 1 ? "" : "s");
	printf("\n  committed   delivered   waiting   failed   phantom   out of order   duplicates\n");
	printf("  %9lld   %9lld   %7lld   %6lld   %7lld   %12lld   %10lld   %s\n",
	       (long long)v.committed, (long long)v.delivered, (long long)v.waiting,
	       (long long)v.failed, (long long)v.phantom, (long long)v.disorder,
	       (long long)v.duplicates, reason);
	return judge(db, &v, unexplained);
}
