/* SPDX-License-Identifier: Apache-2.0 */

/* Publishing: a message exists if and only if its transaction committed. */

#include "store/store.h"
#include "store_world.h"

static struct outbox_message message_of(const char *key, const char *id)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "t";
	m.key = key;
	m.id = id;
	m.data = "{}";
	m.size = 2;
	return m;
}

static int64_t tx_publish(struct store_world *w, void *tx, const char *key)
{
	struct outbox_message m = message_of(key, NULL);
	int64_t seq = 0;

	OK(w->fixture->publish(tx, &m, &seq, &w->err));
	assert_true(seq > 0);
	return seq;
}

static void a_commit_publishes(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct worker *k;
	int64_t a, b;
	void *tx;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	tx = f->begin(w->place);
	a = tx_publish(w, tx, "x");
	b = tx_publish(w, tx, "y");
	assert_true(a < b);
	f->commit(tx);
	assert_drains(k, 2, a, b);
}

static void a_rollback_leaves_nothing(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_message m = message_of("x", "mine");
	struct worker *k;
	int64_t after;
	void *tx;

	world_target(w, "a");
	tx = f->begin(w->place);
	OK(f->publish(tx, &m, NULL, &w->err));
	tx_publish(w, tx, "x");
	f->rollback(tx);
	assert_int_equal(world_messages(w), 0);
	assert_int_equal(world_list(w, &(struct outbox_filter){ .limit = 10 }).count, 0);

	after = world_publish_message(w, &m); /* its id is free again */
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, after);
}

static void a_savepoint_rollback_leaves_the_rest(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct worker *k;
	int64_t before, after;
	void *tx;

	world_target(w, "a");
	tx = f->begin(w->place);
	before = tx_publish(w, tx, "x");
	f->savepoint(tx);
	tx_publish(w, tx, "x");
	tx_publish(w, tx, "y");
	f->rollback_to(tx);
	after = tx_publish(w, tx, "x");
	f->commit(tx);
	assert_int_equal(world_messages(w), 2);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 2, before, after);
}

static void what_is_not_committed_is_not_seen(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_message m = message_of("x", "mine");
	struct outbox_claimed got;
	struct worker *k;
	int64_t seq = 0;
	void *tx;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	tx = f->begin(w->place);
	OK(f->publish(tx, &m, &seq, &w->err));
	assert_int_equal(worker_advance(k, MANY), 0); /* an idle look waits for nobody */
	assert_int_equal(world_messages(w), 0);
	assert_int_equal(world_stats(w, "a")->pending, 0);
	assert_null(world_find(w, "a", seq));
	assert_int_equal(store_get(w->store, "mine", w->arena, &got, &w->err), OUTBOX_ENOTFOUND);
	f->commit(tx);
	OK(store_get(w->store, "mine", w->arena, &got, &w->err));
	assert_drains(k, 1, seq);
}

static void an_id_is_accepted_once(struct store_world *w)
{
	struct outbox_message m[3] = { message_of("x", "one"), message_of("x", "two"),
				       message_of("y", "one") };
	bool repeated[3] = { true, true, false };
	int64_t seqs[3] = { 0 }, again = 0;
	struct worker *k;

	world_target(w, "a");
	OK(store_append(w->store, m, 3, seqs, repeated, &w->err));
	assert_false(repeated[0]);
	assert_false(repeated[1]);
	assert_true(repeated[2]);
	assert_int_equal(seqs[2], seqs[0]);

	OK(store_append(w->store, &m[1], 1, &again, repeated, &w->err));
	assert_true(repeated[0]);
	assert_int_equal(again, seqs[1]);
	assert_int_equal(world_messages(w), 2);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 2, seqs[0], seqs[1]);
	OK(store_append(w->store, &m[1], 1, &again, repeated, &w->err));
	assert_true(repeated[0]);
	assert_drains(k, 0);
}

static void an_id_is_accepted_once_in_a_transaction(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_message m = message_of("x", "one");
	int64_t first = world_publish_message(w, &m), again = 0, other;
	struct worker *k;
	void *tx;

	world_target(w, "a");
	tx = f->begin(w->place);
	OK(f->publish(tx, &m, &again, &w->err));
	assert_int_equal(again, first);
	other = tx_publish(w, tx, "x"); /* the transaction goes on */
	f->commit(tx);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 2, first, other);
}

static void seqs_ascend(struct store_world *w)
{
	struct outbox_message m[50];
	int64_t seqs[50], last = 0;

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 50; i++)
			m[i] = message_of(NULL, NULL);
		OK(store_append(w->store, m, 50, seqs, NULL, &w->err));
		for (size_t i = 0; i < 50; i++) {
			assert_true(seqs[i] > last);
			last = seqs[i];
		}
	}
	assert_int_equal(world_messages(w), 150);
}

static void ids_are_made_and_differ(struct store_world *w)
{
	struct outbox_page page;
	struct outbox_filter filter = filter_of("a");

	world_target(w, "a");
	world_publish_many(w, 20);
	page = world_list(w, &filter);
	assert_int_equal(page.count, 20);
	for (size_t i = 0; i < page.count; i++) {
		assert_int_equal(strlen(page.rows[i].id), 36);
		assert_int_equal(page.rows[i].id[14], '7'); /* UUIDv7 */
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(page.rows[i].id, page.rows[j].id);
	}
}

/* The content type of a row that came without one and past the library's checks, by get() and a claim. */
static void assert_type_read(struct store_world *w, const void *data, size_t size, const char *type)
{
	struct outbox_message m = message_of(NULL, NULL);
	struct outbox_claimed got = { 0 };
	struct worker *k;
	int64_t seq = 0;

	m.data = data;
	m.size = size;
	OK(store_append(w->store, &m, 1, &seq, NULL, &w->err));
	OK(store_get(w->store, world_id(w, "a", seq), w->arena, &got, &w->err));
	assert_string_equal(got.message.content_type, type);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	assert_claim(k, 1, seq);
	assert_string_equal(k->claim.items[0].message.content_type, type);
	assert_int_equal(k->claim.items[0].message.size, size);
	worker_advance(k, 0);
	OK(store_release(w->store, "a", 0, "k", &w->err));
}

static void bytes_without_a_type_are_bytes(struct store_world *w)
{
	world_target(w, "a");
	assert_type_read(w, "\xff\x00\xfe", 3, "application/octet-stream");
	assert_type_read(w, "with a \0 in it", 14, "application/octet-stream");
	assert_type_read(w, "{\"\xc3\xa4\":1}", 8, "application/json");
	assert_type_read(w, "", 0, "application/json");
}

const struct store_case publish_cases[] = {
	{ "a_commit_publishes", a_commit_publishes, 0, 0 },
	{ "a_rollback_leaves_nothing", a_rollback_leaves_nothing, 0, 0 },
	{ "a_savepoint_rollback_leaves_the_rest", a_savepoint_rollback_leaves_the_rest, 0, 0 },
	{ "what_is_not_committed_is_not_seen", what_is_not_committed_is_not_seen, 0, 0 },
	{ "an_id_is_accepted_once", an_id_is_accepted_once, 0, 0 },
	{ "an_id_is_accepted_once_in_a_transaction", an_id_is_accepted_once_in_a_transaction, 0, 0 },
	{ "seqs_ascend", seqs_ascend, 0, 0 },
	{ "ids_are_made_and_differ", ids_are_made_and_differ, 0, 0 },
	{ "bytes_without_a_type_are_bytes", bytes_without_a_type_are_bytes, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
