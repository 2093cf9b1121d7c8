/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What only PostgreSQL has. The tail: receipts draw their numbers before they commit, so one may appear
 * below another that was told. Each settlement is told once all the same, and nobody who is slow silences
 * the others. And the views.
 */

#include "store/store.h"
#include "store_world.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tailer {
	struct store_world *w;
	const char *cursor;
	struct outbox_page page;
};

static void tail(struct tailer *t, size_t limit)
{
	struct store_world *w = t->w;

	OK(store_tail(w->store, t->cursor, limit, w->arena, &t->page, &w->err));
	assert_non_null(t->page.cursor);
	t->cursor = t->page.cursor;
}

static void assert_told(const struct tailer *t, size_t count, int64_t first)
{
	assert_int_equal(t->page.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(t->page.rows[i].seq, first + (int64_t)i);
		assert_int_equal(t->page.rows[i].state, OUTBOX_DELIVERED);
	}
}

/* Settle all that k claimed, in a transaction that stays open. */
static void settle_in(PGconn *tx, const struct worker *k)
{
	const struct outbox_claim *c = &k->claim;
	PGresult *result;
	char sql[512];

	snprintf(sql, sizeof(sql),
		 "SELECT count(*) FROM outbox_advance('%s', %d, '%s', %lld, %lld, 77, %lld,"
		 " ROW(%d, %lld, %lld, %lld, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::outbox_outcomes,"
		 " 0, 0, NULL)",
		 k->target, k->lane, k->owner, (long long)k->n, (long long)k->fence_token,
		 (long long)k->version, (int)c->count, (long long)c->items[0].seq,
		 (long long)c->items[c->count - 1].seq, (long long)c->items[c->count - 1].seq);
	result = PQexec(tx, sql);
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		fail_msg("%s", PQerrorMessage(tx));
	PQclear(result);
}

/* Two lanes with three messages each in flight. */
static void prepare(struct tailer *t, struct worker **slow, struct worker **quick, int64_t *seqs)
{
	struct store_world *w = world_new(&postgres_store_fixture, 2);

	*t = (struct tailer){ .w = w };
	world_target(w, "a");
	seqs[0] = world_publish_run(w, key_in_lane(w, 0, 0), 3);
	seqs[1] = world_publish_run(w, key_in_lane(w, 1, 0), 3);
	*slow = worker_start(w, "k", "a", 0);
	*quick = worker_start(w, "k", "a", 1);
	worker_advance(*slow, MANY);
	assert_int_equal((*slow)->claim.count, 3);
	worker_advance(*quick, MANY);
	assert_int_equal((*quick)->claim.count, 3);
	tail(t, 10);
	assert_int_equal(t->page.count, 0);
}

static void a_slow_commit_is_told_once(void **state)
{
	struct worker *slow, *quick;
	const struct store_fixture *f = &postgres_store_fixture;
	struct tailer t, early;
	void *tx, *writer;
	int64_t seqs[2];

	(void)state;
	prepare(&t, &slow, &quick, seqs);
	writer = f->begin(t.w->place); /* an application's own, open all the time */
	PQclear(PQexec(writer, "INSERT INTO outbox_message (type, payload) VALUES ('t', '')"));
	tx = f->begin(t.w->place);
	settle_in(tx, slow); /* has its number */
	worker_advance(quick, 0);
	early = (struct tailer){ .w = t.w };
	tail(&early, 10); /* starts between the two */
	tail(&t, 10);
	assert_told(&t, 3, seqs[1]);
	tail(&t, 10);
	assert_told(&t, 0, 0);
	f->commit(tx);
	tail(&t, 2); /* page by page */
	assert_told(&t, 2, seqs[0]);
	tail(&t, 2);
	assert_told(&t, 1, seqs[0] + 2);
	tail(&t, 2);
	assert_told(&t, 0, 0);
	tail(&early, 10);
	assert_told(&early, 3, seqs[0]);
	tail(&early, 10);
	assert_told(&early, 0, 0);
	f->rollback(writer);
	world_free(t.w);
}

static void a_number_that_never_comes_is_forgotten(void **state)
{
	const struct store_fixture *f = &postgres_store_fixture;
	struct worker *slow, *quick;
	struct tailer t;
	int64_t seqs[2];
	void *tx;

	(void)state;
	prepare(&t, &slow, &quick, seqs);
	tx = f->begin(t.w->place);
	settle_in(tx, slow);
	worker_advance(quick, 0);
	tail(&t, 10);
	assert_told(&t, 3, seqs[1]);
	assert_non_null(strchr(t.cursor, ',')); /* remembered */
	f->rollback(tx);
	tail(&t, 10);
	assert_told(&t, 0, 0);
	assert_null(strchr(t.cursor, ','));
	worker_advance(slow, 0);
	tail(&t, 10);
	assert_told(&t, 3, seqs[0]);
	world_free(t.w);
}

static void what_is_no_cursor_is_refused(void **state)
{
	static const char *const wrong[] = { "",
					     "1",
					     "1:2",
					     "1:2:3:4",
					     "1:2:x",
					     "-1:0:0",
					     "1:0:0,",
					     "1:0:0,5",
					     "1:0:0,5-6",
					     "1:0:0,5-6@",
					     "1:0:0,5-6@x",
					     "1:0:0,5-6@7,",
					     "9999999999999999999:0:0" };
	struct store_world *w = world_new(&postgres_store_fixture, 1);
	struct outbox_page page = { 0 };

	(void)state;
	world_target(w, "a");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(store_tail(w->store, wrong[i], 1, w->arena, &page, &w->err),
				 OUTBOX_EINVAL);
		assert_non_null(strstr(w->err.message, "does not come from a tail of this store"));
	}
	OK(store_tail(w->store, "1:0:0,5-6@7,8-8@9", 1, w->arena, &page, &w->err));
	world_free(w);
}

#define SAME \
	"seq, id, target, type, key, lane, state, why, attempts, owner, created_at, last_status_at"
#define LISTED                                                                            \
	"SELECT " SAME                                                                    \
	" FROM outbox_list(NULL, NULL, NULL, NULL, '{pending,sending,delivered,failed}'," \
	" NULL, NULL, NULL, 0, '', 1000)"
#define VIEWED "SELECT " SAME " FROM outbox_delivery"

static int64_t number(void *tx, const char *sql)
{
	PGresult *result = PQexec(tx, sql);
	int64_t n;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		fail_msg("%s", PQerrorMessage(tx));
	n = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	return n;
}

static void the_views_say_what_list_says(void **state)
{
	static const char *const types[] = { "other" };
	const struct store_fixture *f = &postgres_store_fixture;
	struct outbox_target_def some = target_def("c");
	struct worker *slow, *quick;
	int64_t seqs[2], drained[30];
	struct tailer t;
	void *tx, *late;

	(void)state;
	prepare(&t, &slow, &quick, seqs);
	world_target(t.w, "b");
	some.route.types = types; /* passes all but one */
	some.route.n_types = 1;
	world_target_put(t.w, &some);
	world_publish_type(t.w, "other");
	for (int lane = 0; lane < 2; lane++)
		worker_drain(worker_start(t.w, "k", "c", lane), (int64_t[1]){ 0 }, 1);
	late = f->begin(t.w->place);
	PQclear(PQexec(late, "INSERT INTO outbox_message (type, payload) VALUES ('t', '')"));
	world_publish_many(t.w, 20);
	settle_fail(quick, 0);
	worker_drain(quick, drained, 30);
	worker_drain(slow, drained, 30); /* both stand above the late one */
	world_publish_many(t.w, 8);
	worker_advance(quick, 2);
	worker_advance(slow, 2);
	f->commit(late);
	tx = f->begin(t.w->place);
	assert_int_equal(number(tx, "SELECT count(*) FROM (" VIEWED " EXCEPT " LISTED ") n"), 0);
	assert_int_equal(number(tx, "SELECT count(*) FROM (" LISTED " EXCEPT " VIEWED ") n"), 0);
	assert_int_equal(number(tx, "SELECT count(*) FROM outbox_delivery"), 73);
	assert_int_equal(number(tx, "SELECT count(DISTINCT state) FROM outbox_delivery"), 4);
	assert_int_equal(number(tx, "SELECT count(*) FROM outbox_failed"), 1);
	assert_int_equal(number(tx, "SELECT pending FROM outbox_backlog WHERE target = 'b'"), 36);
	assert_int_equal(number(tx, "SELECT count(*) FROM outbox_backlog b JOIN outbox_stats(100001, NULL) s"
				    " USING (target, pending, sending, failed)"),
			 6);
	f->rollback(tx);
	world_free(t.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_commit_is_told_once),
		cmocka_unit_test(a_number_that_never_comes_is_forgotten),
		cmocka_unit_test(what_is_no_cursor_is_refused),
		cmocka_unit_test(the_views_say_what_list_says),
	};
	const char *why = postgres_store_fixture.unavailable();

	if (why) {
		printf("skipped: %s\n", why);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
