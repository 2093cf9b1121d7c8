/* SPDX-License-Identifier: Apache-2.0 */

/* What only the memory store has: its transactions' conflicts, faults on demand, repeatable runs. */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "core/settlement.h"
#include "frozen_clock.h"
#include "memory_store/memory.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SEC OUTBOX_SECONDS

struct setup {
	struct frozen_clock clock;
	struct random_state random;
	struct memory_db *db;
	struct outbox_store *store;
	struct outbox_arena *arena;
	struct outbox_error err;
	/* the fault to come */
	const char *op;
	enum memory_phase phase;
	int status;
};

static void ok(struct setup *t, int status)
{
	if (status)
		print_error("%s: %s\n", outbox_status_name(status), t->err.message);
	assert_int_equal(status, OUTBOX_OK);
}

static int open_store(struct setup *t, const char *url, void *context,
		      struct outbox_store **ret_store)
{
	struct outbox_store_config config = { .struct_size = sizeof(config),
					      .url = url,
					      .clock = &t->clock.base,
					      .random = &t->random.base,
					      .context = context };

	return store_open(&memory_store_ops, &config, false, ret_store, &t->err);
}

static int begin(void **state)
{
	static struct setup t;

	t = (struct setup){ 0 };
	frozen_clock_init(&t.clock, 1000 * SEC);
	random_init(&t.random, 1);
	t.db = memory_db_new("m", &t.clock.base, 2);
	t.arena = outbox_arena_new((size_t)1 << 20);
	ok(&t, open_store(&t, "memory:m", t.db, &t.store));
	ok(&t, store_init(t.store, NULL, &t.err));
	*state = &t;
	return 0;
}

static int end(void **state)
{
	struct setup *t = *state;

	store_close(t->store);
	outbox_arena_free(t->arena);
	memory_db_free(t->db);
	return 0;
}

static struct outbox_message message(const char *id)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "t";
	m.id = id;
	return m;
}

static struct outbox_settle_and_claim start(struct setup *t)
{
	struct outbox_target_def def = { .name = "a" };
	struct outbox_settle_and_claim request = {
		.target = "a", .owner = "k", .max_messages = 10, .max_bytes = 1000
	};
	struct outbox_lease_request lease = { .target = "a", .owner = "k", .duration = SEC };
	struct outbox_lease leased;
	struct outbox_head head;

	ok(t, store_target_put(t->store, &def, &request.route_version, &t->err));
	lease.route_version = request.route_version;
	ok(t, store_lease(t->store, &lease, &leased, &t->err));
	ok(t, store_take_over(t->store, "a", 0, "k", 5, &head, &t->err));
	request.n = head.n;
	request.fence_token = head.fence_token;
	request.new_token = 6;
	return request;
}

static int64_t publish(struct setup *t, const char *id)
{
	struct outbox_message m = message(id);
	int64_t seq;

	ok(t, store_append(t->store, &m, 1, &seq, NULL, &t->err));
	return seq;
}

static void without_a_database_it_is_for_tests(void **state)
{
	struct setup *t = *state;
	struct outbox_store *store = NULL;

	assert_int_equal(open_store(t, "memory:m", NULL, &store), OUTBOX_ECONFIG);
	assert_non_null(strstr(t->err.message, "for tests"));
	assert_null(store);
}

static void an_undecided_id_is_busy(void **state)
{
	struct setup *t = *state;
	struct memory_tx *one = memory_tx_begin(t->db), *two = memory_tx_begin(t->db);
	struct outbox_message m = message("mine");
	int64_t seq, again;

	ok(t, memory_tx_publish(one, &m, &seq, &t->err));
	ok(t, memory_tx_publish(one, &m, &again, &t->err));
	assert_int_equal(seq, again);
	assert_int_equal(memory_tx_publish(two, &m, &again, &t->err), OUTBOX_EBUSY);
	assert_int_equal(store_append(t->store, &m, 1, NULL, NULL, &t->err), OUTBOX_EBUSY);
	assert_int_equal(store_truncate(t->store, &t->err), OUTBOX_EBUSY);
	memory_tx_rollback(one);
	ok(t, memory_tx_publish(two, &m, &again, &t->err));
	assert_true(again > seq); /* a number is never given twice */
	memory_tx_commit(two);
	assert_null(memory_tx_commit(NULL));
	assert_null(memory_tx_rollback(NULL));
}

static int fault(void *context, const char *op, enum memory_phase phase, struct outbox_error *err)
{
	struct setup *t = context;

	if (!t->op || strcmp(op, t->op) != 0 || phase != t->phase)
		return OUTBOX_OK;
	t->op = NULL;
	return outbox_fail(err, t->status, "planted");
}

static void plant(struct setup *t, const char *op, enum memory_phase phase, int status)
{
	t->op = op;
	t->phase = phase;
	t->status = status;
	memory_db_set_fault(t->db, fault, t);
}

static void a_fault_before_changes_nothing(void **state)
{
	struct setup *t = *state;
	struct outbox_settle_and_claim request = start(t);
	struct outbox_claim claim;

	publish(t, NULL);
	plant(t, "settle_and_claim", MEMORY_BEFORE, OUTBOX_ECONN);
	assert_int_equal(store_settle_and_claim(t->store, &request, t->arena, &claim, &t->err),
			 OUTBOX_ECONN);
	assert_string_equal(t->err.message, "planted");
	request.new_token = 7; /* another request is free to come */
	ok(t, store_settle_and_claim(t->store, &request, t->arena, &claim, &t->err));
	assert_int_equal(claim.count, 1);
	assert_int_equal(claim.fence_token, 7);
}

static void a_lost_reply_was_done(void **state)
{
	struct setup *t = *state;
	struct outbox_settle_and_claim request = start(t);
	struct outbox_claim claim;

	publish(t, NULL);
	plant(t, "settle_and_claim", MEMORY_AFTER, OUTBOX_ETIMEDOUT);
	assert_int_equal(store_settle_and_claim(t->store, &request, t->arena, &claim, &t->err),
			 OUTBOX_ETIMEDOUT);
	request.new_token = 7;
	assert_int_equal(store_settle_and_claim(t->store, &request, t->arena, &claim, &t->err),
			 OUTBOX_EFENCED);
	request.new_token = 6; /* the very same again */
	ok(t, store_settle_and_claim(t->store, &request, t->arena, &claim, &t->err));
	assert_int_equal(claim.count, 1);
	memory_db_set_fault(t->db, NULL, NULL);
}

static void a_full_arena_cuts_the_claim(void **state)
{
	struct outbox_arena *small = outbox_arena_new(3 * sizeof(struct outbox_claimed) + 200),
			    *tiny = outbox_arena_new(64);
	struct outbox_settlement settled = { .outcome = OUTBOX_OUT_DELIVERED };
	struct setup *t = *state;
	struct outbox_settle_and_claim request = start(t);
	struct outbox_claim claim = { 0 };
	struct outbox_stats stats;

	settled.seq = publish(t, NULL);
	for (int i = 0; i < 9; i++)
		publish(t, NULL);
	assert_int_equal(store_settle_and_claim(t->store, &request, tiny, &claim, &t->err),
			 OUTBOX_ENOMEM);
	request.max_messages = 3;
	ok(t, store_settle_and_claim(t->store, &request, small, &claim, &t->err));
	assert_int_equal(claim.count, 1);
	request.n = claim.n;
	request.fence_token = claim.fence_token;
	request.new_token = 8;
	request.settled = &settled;
	request.n_settled = 1;
	ok(t, store_settle_and_claim(t->store, &request, tiny, &claim, &t->err));
	assert_int_equal(claim.count, 0); /* what was settled is settled */
	ok(t, store_stats(t->store, t->arena, &stats, &t->err));
	assert_int_equal(stats.targets[0].delivered_ever, 1);
	assert_int_equal(stats.targets[0].pending, 9);
	outbox_arena_free(small);
	outbox_arena_free(tiny);
}

static void a_settlement_must_be_the_claims(void **state)
{
	struct setup *t = *state;
	struct outbox_settlement settled[2] = { { .outcome = OUTBOX_OUT_DELIVERED } };
	struct outbox_settle_and_claim request = start(t);
	struct outbox_claim claim;

	publish(t, NULL);
	ok(t, store_settle_and_claim(t->store, &request, t->arena, &claim, &t->err));
	request.n = claim.n;
	request.fence_token = claim.fence_token;
	request.settled = settled;
	assert_int_equal(store_settle_and_claim(t->store, &request, t->arena, &claim, &t->err),
			 OUTBOX_EINVAL);
	request.n_settled = 1;
	settled[0].seq = 99;
	assert_int_equal(store_settle_and_claim(t->store, &request, t->arena, &claim, &t->err),
			 OUTBOX_EINVAL);
	settled[0].seq = claim.items[0].seq;
	settled[0].outcome = OUTBOX_OUTCOME_UNSET;
	assert_int_equal(store_settle_and_claim(t->store, &request, t->arena, &claim, &t->err),
			 OUTBOX_EINVAL);
}

static void only_the_owner_takes_a_lane(void **state)
{
	struct setup *t = *state;
	struct outbox_head head;

	start(t);
	assert_int_equal(store_take_over(t->store, "a", 0, "other", 9, &head, &t->err),
			 OUTBOX_EFENCED);
	assert_non_null(strstr(t->err.message, "leased to k"));
}

static void the_returned_tail(void **state)
{
	static const struct {
		const char *outcomes, *log; /* d r w p; + from the log, - a detour */
		size_t tail;
	} cases[] = {
		{ "", "", 0 },       { "r", "+", 1 },     { "r", "-", 0 },
		{ "drr", "+++", 2 }, { "rdr", "+++", 1 }, { "rrd", "+++", 0 },
		{ "rrr", "++-", 0 }, { "rrr", "-++", 2 }, { "rpr", "+++", 1 },
		{ "rrp", "+++", 0 }, { "p", "+", 0 },     { "rwrr", "++++", 2 },
	};
	struct outbox_settlement settled[4];
	bool from_log[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t n = strlen(cases[i].outcomes);

		for (size_t j = 0; j < n; j++) {
			char c = cases[i].outcomes[j];

			settled[j].outcome = c == 'd'   ? OUTBOX_OUT_DELIVERED
					     : c == 'r' ? OUTBOX_OUT_RETURNED
					     : c == 'w' ? OUTBOX_OUT_WAITING
							: OUTBOX_OUT_PARKED;
			from_log[j] = cases[i].log[j] == '+';
		}
		assert_int_equal(settlement_returned_tail(settled, from_log, n), cases[i].tail);
	}
}

static void ops_are_checked(void **state)
{
	struct outbox_store_ops ops = memory_store_ops;
	struct setup *t = *state;
	char versions[80];

	ok(t, store_ops_check(&ops, &t->err));
	assert_int_equal(store_ops_check(NULL, &t->err), OUTBOX_EINVAL);
	ops.contract = OUTBOX_STORE_CONTRACT + 1;
	assert_int_equal(store_ops_check(&ops, &t->err), OUTBOX_EINVAL);
	snprintf(versions, sizeof(versions), "its contract has version %d, this library's has %d",
		 OUTBOX_STORE_CONTRACT + 1, OUTBOX_STORE_CONTRACT);
	assert_non_null(strstr(t->err.message, versions));
	ops = memory_store_ops;
	ops.name = "";
	assert_int_equal(store_ops_check(&ops, &t->err), OUTBOX_EINVAL);
	ops = memory_store_ops;
	ops.schemes = NULL;
	assert_int_equal(store_ops_check(&ops, &t->err), OUTBOX_EINVAL);
	ops = memory_store_ops;
	ops.operate.purgeable = NULL;
	assert_int_equal(store_ops_check(&ops, &t->err), OUTBOX_EINVAL);
	assert_non_null(strstr(t->err.message, "purgeable"));
}

/* The same calls on a new database, as text. */
static void run_once(struct buf *out)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter) };
	struct outbox_page page;
	struct setup *t;
	void *state;

	begin(&state);
	t = state;
	start(t);
	for (int i = 0; i < 20; i++)
		publish(t, NULL);
	ok(t, store_list(t->store, &filter, t->arena, &page, &t->err));
	for (size_t i = 0; i < page.count; i++)
		buf_printf(out, "%lld %s %d\n", (long long)page.rows[i].seq, page.rows[i].id,
			   page.rows[i].lane);
	end(&state);
}

static void runs_repeat_themselves(void **state)
{
	_cleanup_(buf_deinit) struct buf one = BUF_INIT(65536), two = BUF_INIT(65536);

	(void)state;
	run_once(&one);
	run_once(&two);
	assert_true(one.size > 700);
	assert_string_equal(buf_str(&one), buf_str(&two));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_a_database_it_is_for_tests, begin, end),
		cmocka_unit_test_setup_teardown(an_undecided_id_is_busy, begin, end),
		cmocka_unit_test_setup_teardown(a_fault_before_changes_nothing, begin, end),
		cmocka_unit_test_setup_teardown(a_lost_reply_was_done, begin, end),
		cmocka_unit_test_setup_teardown(a_full_arena_cuts_the_claim, begin, end),
		cmocka_unit_test_setup_teardown(a_settlement_must_be_the_claims, begin, end),
		cmocka_unit_test_setup_teardown(only_the_owner_takes_a_lane, begin, end),
		cmocka_unit_test_setup_teardown(ops_are_checked, begin, end),
		cmocka_unit_test(the_returned_tail),
		cmocka_unit_test(runs_repeat_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
