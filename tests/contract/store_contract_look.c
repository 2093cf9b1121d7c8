/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What list, tail and stats say while transactions commit in any order: a lower seq that appears after a
 * higher one was settled is pending, never delivered; and all ways of looking say the same.
 */

#include "store/store.h"
#include "store_world.h"

static int64_t tx_publish(struct store_world *w, void *tx, const char *key)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t seq = 0;

	m.type = "t";
	m.key = key;
	OK(w->fixture->publish(tx, &m, &seq, &w->err));
	return seq;
}

/* A page of each state must have what the page of all says, and the numbers must fit. */
static void assert_looks_agree(struct store_world *w, const char *target)
{
	struct outbox_filter filter = filter_of(target);
	struct outbox_page all = world_list(w, &filter);
	const struct outbox_target_stats *stats = world_stats(w, target);
	int64_t fresh = 0, sending = 0;

	assert_null(all.cursor);
	for (int state = OUTBOX_PENDING; state <= OUTBOX_DISCARDED; state++) {
		struct outbox_page page;
		size_t at = 0;

		filter.state = state;
		page = world_list(w, &filter);
		for (size_t i = 0; i < all.count; i++) {
			const struct outbox_delivery *d = &all.rows[i];

			fresh += d->state == state && d->why == OUTBOX_NEW;
			sending += d->state == state && state == OUTBOX_SENDING;
			if (d->state != state)
				continue;
			assert_true(at < page.count);
			assert_int_equal(page.rows[at].seq, d->seq);
			assert_int_equal(page.rows[at].why, d->why);
			assert_int_equal(page.rows[at].last_status_at, d->last_status_at);
			assert_int_equal(!page.rows[at].owner, !d->owner);
			at++;
		}
		assert_int_equal(at, page.count);
	}
	assert_int_equal(stats->pending, fresh);
	assert_int_equal(stats->sending, sending);
}

static void a_late_commit_is_listed_as_pending(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_filter filter = filter_of("a");
	outbox_time start = world_now(w);
	int64_t low, high;
	struct worker *k;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	late = f->begin(w->place);
	low = tx_publish(w, late, "x");
	world_step(w, SEC);
	high = world_publish(w, "y");
	assert_drains(k, 1, high);
	assert_null(world_find(w, "a", low)); /* nobody knows of it yet */
	assert_int_equal(world_stats(w, "a")->pending, 0);
	f->commit(late);
	assert_state(w, "a", low, OUTBOX_PENDING, OUTBOX_NEW);
	assert_state(w, "a", high, OUTBOX_DELIVERED, 0);
	assert_looks_agree(w, "a");
	filter.state = OUTBOX_PENDING;
	assert_int_equal(world_list(w, &filter).count, 1);
	assert_true(world_stats(w, "a")->oldest >= start);
	worker_advance(k, MANY);
	assert_state(w, "a", low, OUTBOX_SENDING, 0);
	assert_looks_agree(w, "a");
	worker_advance(k, 0);
	assert_state(w, "a", low, OUTBOX_DELIVERED, 0);
	assert_looks_agree(w, "a");
}

static void pages_of_pending_ones_have_late_commits_in_place(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_filter filter = filter_of("a");
	int64_t low[3], last = 0, seqs[64];
	struct outbox_page page;
	struct worker *k;
	size_t seen = 0;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	late = f->begin(w->place);
	for (int i = 0; i < 3; i++) {
		low[i] = tx_publish(w, late, NULL);
		world_publish_many(w, 5);
		assert_int_equal(worker_drain(k, seqs, 64), 5);
	}
	f->commit(late);
	world_publish_many(w, 4);
	filter.state = OUTBOX_PENDING;
	filter.limit = 2;
	do {
		page = world_list(w, &filter);
		for (size_t i = 0; i < page.count; i++) {
			assert_true(page.rows[i].seq > last);
			last = page.rows[i].seq;
			assert_true(seen >= 3 || last == low[seen]);
			seen++;
		}
		filter.cursor = page.cursor;
	} while (page.cursor);
	assert_int_equal(seen, 7);
}

static void two_windows_are_told_apart(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	int64_t low[2], first, second;
	struct worker *k;
	void *late[2];

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	late[0] = f->begin(w->place);
	low[0] = tx_publish(w, late[0], NULL);
	first = world_publish_many(w, 4);
	worker_advance(k, 1);
	late[1] = f->begin(w->place);
	low[1] = tx_publish(w, late[1], NULL);
	second = world_publish_many(w, 3);
	worker_advance(k, 2);
	f->commit(late[0]); /* below what is settled, and not in the window that is being read */
	assert_claim(k, 2, first + 1, first + 2);
	assert_state(w, "a", first, OUTBOX_DELIVERED, 0);
	assert_state(w, "a", first + 1, OUTBOX_SENDING, 0);
	assert_state(w, "a", first + 2, OUTBOX_SENDING, 0);
	assert_state(w, "a", first + 3, OUTBOX_PENDING, OUTBOX_NEW);
	assert_state(w, "a", second, OUTBOX_PENDING, OUTBOX_NEW);
	assert_state(w, "a", low[0], OUTBOX_PENDING, OUTBOX_NEW);
	assert_looks_agree(w, "a");
	f->commit(late[1]);
	assert_state(w, "a", low[1], OUTBOX_PENDING, OUTBOX_NEW);
	assert_looks_agree(w, "a");
	worker_restart(k); /* nothing is in flight any more */
	assert_state(w, "a", first + 1, OUTBOX_PENDING, OUTBOX_NEW);
	assert_looks_agree(w, "a");
}

static void tail_tells_a_late_commit_once(struct store_world *w)
{
	const struct store_fixture *f = w->fixture;
	struct outbox_page page = { 0 };
	const char *cursor;
	int64_t low, high;
	struct worker *k;
	void *late;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	OK(store_tail(w->store, NULL, 10, w->arena, &page, &w->err));
	cursor = page.cursor;
	late = f->begin(w->place);
	low = tx_publish(w, late, "x");
	high = world_publish(w, "y");
	assert_drains(k, 1, high);
	OK(store_tail(w->store, cursor, 10, w->arena, &page, &w->err));
	assert_int_equal(page.count, 1);
	assert_int_equal(page.rows[0].seq, high);
	f->commit(late);
	OK(store_tail(w->store, page.cursor, 10, w->arena, &page, &w->err));
	assert_int_equal(page.count, 0);
	assert_drains(k, 1, low);
	OK(store_tail(w->store, page.cursor, 10, w->arena, &page, &w->err));
	assert_int_equal(page.count, 1);
	assert_int_equal(page.rows[0].seq, low);
	assert_int_equal(page.rows[0].state, OUTBOX_DELIVERED);
	OK(store_tail(w->store, page.cursor, 10, w->arena, &page, &w->err));
	assert_int_equal(page.count, 0);
}

static void tail_leaves_out_what_was_returned(struct store_world *w)
{
	struct outbox_page page = { 0 };
	struct worker *k;
	int64_t first;

	world_target(w, "a");
	first = world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	OK(store_tail(w->store, NULL, 10, w->arena, &page, &w->err));
	worker_advance(k, MANY);
	settle_return(k, 1);
	settle_return(k, 2);
	worker_advance(k, 0);
	OK(store_tail(w->store, page.cursor, 10, w->arena, &page, &w->err));
	assert_int_equal(page.count, 1);
	assert_int_equal(page.rows[0].seq, first);
}

/* Not on SQLite, whose receipt names one version for what it settles and what it claims. */
static void what_new_routing_leaves_out_was_not_delivered(struct store_world *w)
{
	static const char *const types[] = { "other" };
	struct outbox_target_def def = target_def("a");
	struct worker *k;
	int64_t first;

	world_target(w, "a");
	first = world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 2);
	settle_return(k, 1);
	def.route.types = types;
	def.route.n_types = 1;
	k->version = world_target_put(w, &def);
	worker_advance(k, MANY); /* settles one, and passes the others */
	assert_int_equal(k->claim.count, 0);
	assert_state(w, "a", first, OUTBOX_DELIVERED, 0);
	assert_null(world_find(w, "a", first + 1));
	assert_null(world_find(w, "a", first + 2));
	assert_looks_agree(w, "a");
}

/* ---- anything, against a model ---------------------------------------------------------------- */

#define OPEN_MAX 4
#define SEQS_MAX 600

enum fate { UNSEEN = 0, OPEN, NEW, CLAIMED, DONE, WAITS };

struct model {
	struct store_world *w;
	struct worker *k;
	void *tx[OPEN_MAX];
	enum fate fate[SEQS_MAX];
	int owner[SEQS_MAX]; /* of OPEN ones: which transaction */
	int64_t last;
};

static unsigned pick(struct model *m, unsigned n)
{
	return (unsigned)(m->w->random.base.next(&m->w->random.base) % n);
}

static void note_fate(struct model *m, int64_t seq, enum fate fate, int owner)
{
	assert_true(seq > 0 && seq < SEQS_MAX);
	m->fate[seq] = fate;
	m->owner[seq] = owner;
	m->last = seq > m->last ? seq : m->last;
}

static void end_tx(struct model *m, int i, bool commit)
{
	(commit ? m->w->fixture->commit : m->w->fixture->rollback)(m->tx[i]);
	m->tx[i] = NULL;
	for (int64_t seq = 1; seq <= m->last; seq++) {
		if (m->fate[seq] == OPEN && m->owner[seq] == i)
			m->fate[seq] = commit ? NEW : UNSEEN;
	}
}

static void publish_some(struct model *m)
{
	int i = (int)pick(m, OPEN_MAX + 1);

	if (i == OPEN_MAX) {
		note_fate(m, world_publish(m->w, NULL), NEW, -1);
		return;
	}
	if (!m->tx[i])
		m->tx[i] = m->w->fixture->begin(m->w->place);
	for (unsigned n = 1 + pick(m, 3); n > 0; n--)
		note_fate(m, tx_publish(m->w, m->tx[i], NULL), OPEN, i);
}

static void advance_some(struct model *m)
{
	size_t claimed = m->k->claim.count;

	if (claimed && pick(m, 8) == 0) {
		worker_restart(m->k);
		for (int64_t seq = 1; seq <= m->last; seq++)
			m->fate[seq] = m->fate[seq] == CLAIMED ? NEW : m->fate[seq];
		return;
	}
	for (size_t i = 0; i < claimed; i++)
		m->fate[m->k->claim.items[i].seq] = DONE;
	if (claimed && pick(m, 4) == 0) {
		m->fate[m->k->claim.items[claimed - 1].seq] = NEW;
		settle_return(m->k, claimed - 1);
	} else if (claimed && pick(m, 8) == 0) {
		m->fate[m->k->claim.items[0].seq] = WAITS;
		settle_wait(m->k, 0, OUTBOX_HOURS);
	}
	worker_advance(m->k, pick(m, 4));
	for (size_t i = 0; i < m->k->claim.count; i++) {
		assert_int_equal(m->fate[m->k->claim.items[i].seq], NEW);
		m->fate[m->k->claim.items[i].seq] = CLAIMED;
	}
}

static void assert_model(struct model *m)
{
	static const int states[] = {
		0, 0, OUTBOX_PENDING, OUTBOX_SENDING, OUTBOX_DELIVERED, OUTBOX_PENDING
	};
	struct outbox_filter filter = filter_of("a");
	struct outbox_page page = world_list(m->w, &filter);
	size_t at = 0;

	for (int64_t seq = 1; seq <= m->last; seq++) {
		if (!states[m->fate[seq]])
			continue;
		assert_true(at < page.count);
		assert_int_equal(page.rows[at].seq, seq);
		assert_int_equal(page.rows[at].state, states[m->fate[seq]]);
		assert_int_equal(page.rows[at].why == OUTBOX_WAITING, m->fate[seq] == WAITS);
		at++;
	}
	assert_int_equal(at, page.count);
	assert_looks_agree(m->w, "a");
}

static void whatever_commits_when_the_states_are_right(struct store_world *w)
{
	struct model m = { .w = w };

	world_target(w, "a");
	m.k = worker_start(w, "k", "a", 0);
	for (int step = 0; step < 150; step++) {
		int i = (int)pick(&m, OPEN_MAX);

		switch (pick(&m, 5)) {
		case 0:
		case 1:
			publish_some(&m);
			break;
		case 2:
			if (m.tx[i])
				end_tx(&m, i, pick(&m, 5) > 0);
			break;
		default:
			advance_some(&m);
			break;
		}
		assert_model(&m);
	}
	for (int i = 0; i < OPEN_MAX; i++) {
		if (m.tx[i])
			end_tx(&m, i, true);
	}
	assert_model(&m);
}

#define LATE(name)                                 \
	{                                          \
#name, name, 0, STORE_LATE_COMMITS \
	}

const struct store_case look_cases[] = {
	LATE(a_late_commit_is_listed_as_pending),
	LATE(pages_of_pending_ones_have_late_commits_in_place),
	LATE(two_windows_are_told_apart),
	LATE(tail_tells_a_late_commit_once),
	{ "tail_leaves_out_what_was_returned", tail_leaves_out_what_was_returned, 0, 0 },
	LATE(what_new_routing_leaves_out_was_not_delivered),
	LATE(whatever_commits_when_the_states_are_right),
	{ NULL, NULL, 0, 0 },
};
