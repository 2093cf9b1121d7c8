/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/batch.h"

#include "base/random.h"
#include "base/unit_test.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
	struct batch batch;
	struct random_state random;
	struct decide_context context;
};

/* A claim of one message for each key named, in order. */
static struct fixture *fly(const char *const *keys, size_t n, enum wire_order order, bool hold)
{
	struct fixture *x = calloc(1, sizeof(*x));
	struct batch *b = &x->batch;

	assert_int_equal(batch_init(b, 1 << 20, NULL), OUTBOX_OK);
	random_init(&x->random, 1);
	x->context = (struct decide_context){ .policy = outbox_policy_find("default"),
					      .now = 1000 * OUTBOX_SECONDS,
					      .random = &x->random.base,
					      .memory = b->arena,
					      .hold = hold };
	b->claim.count = n;
	b->claim.items = outbox_arena_alloc(b->arena, n * sizeof(*b->claim.items));
	for (size_t i = 0; i < n; i++) {
		b->claim.items[i].seq = (int64_t)i + 1;
		b->claim.items[i].message.key = keys[i];
		b->claim.items[i].message.type = "t";
	}
	assert_int_equal(batch_begin(b, order, NULL), OUTBOX_OK);
	return x;
}

static void land(struct fixture *x)
{
	batch_deinit(&x->batch);
	free(x);
}

/* Give the round these verdicts, by letter: a acked, r retry, j rejected, u unknown, - none. */
static void answer(struct fixture *x, const char *verdicts, int status)
{
	static const int of[128] = {
		['a'] = OUTBOX_ACKED, ['r'] = OUTBOX_RETRY, ['j'] = OUTBOX_REJECTED, ['u'] = OUTBOX_UNKNOWN
	};

	assert_int_equal(x->batch.round.count, strlen(verdicts));
	for (size_t i = 0; verdicts[i]; i++)
		outbox_batch_verdict(&x->batch.round, i, of[(int)verdicts[i]], 0, NULL);
	batch_judge(&x->batch, &x->context, status, false);
}

/* Outcomes by letter: d delivered, r returned, w waiting, t deferred, p parked, f failed. */
static void assert_outcomes(struct fixture *x, const char *expected)
{
	static const char letter[] = ".drwtpf";
	char text[32] = "";

	for (size_t i = 0; i < x->batch.claim.count; i++)
		text[i] = letter[x->batch.outcomes[i].outcome];
	assert_string_equal(text, expected);
}

static void rounds_go_on_key_by_key(void **state)
{
	const char *const keys[] = { "a", "a", "b", NULL, "a" };
	struct fixture *x = fly(keys, 5, WIRE_ROUNDS, false);

	(void)state;
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 3);
	answer(x, "aaa", 0);
	assert_outcomes(x, "d.dd.");
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 1);
	answer(x, "r", 0);
	assert_outcomes(x, "dwddp");
	assert_int_equal(x->batch.outcomes[4].attempts, 0);
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 0);
	land(x);
}

static void together_everything_leaves_at_once(void **state)
{
	const char *const keys[] = { "a", "a", "b", "a" };
	struct fixture *x = fly(keys, 4, WIRE_TOGETHER, false);

	(void)state;
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 4);
	/* the transport stopped key a at its first message: the others of a are not charged */
	answer(x, "rra-", 0);
	assert_outcomes(x, "wpdp");
	assert_int_equal(x->batch.outcomes[0].attempts, 1);
	assert_int_equal(x->batch.outcomes[1].attempts, 0);
	land(x);
}

static void together_a_rejected_message_lets_its_key_go_on(void **state)
{
	const char *const keys[] = { "a", "a", "a" };
	struct fixture *x = fly(keys, 3, WIRE_TOGETHER, false);

	(void)state;
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 3);
	answer(x, "aja", 0);
	assert_outcomes(x, "dfd");
	land(x);
}

static void together_a_blocked_message_parks_the_rest_of_its_key(void **state)
{
	const char *const keys[] = { "a", "b", "a" };
	struct fixture *x = fly(keys, 3, WIRE_TOGETHER, false);

	(void)state;
	x->batch.claim.items[0].blocked = true;
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 1);
	answer(x, "a", 0);
	assert_outcomes(x, "pdp");
	land(x);
}

static void a_lost_connection_returns_the_rest(void **state)
{
	const char *const keys[] = { "a", "a", "b", "c" };
	struct fixture *x = fly(keys, 4, WIRE_ROUNDS, false);

	(void)state;
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 3);
	answer(x, "a--", OUTBOX_ECONN);
	batch_return_rest(&x->batch);
	assert_outcomes(x, "drrr");
	assert_int_equal(batch_count(&x->batch).returned, 3);
	land(x);
}

static void behind_a_failure_the_key_waits_until_it_is_written_down(void **state)
{
	const char *const keys[] = { "a", "a", "a" };
	struct fixture *x = fly(keys, 3, WIRE_ROUNDS, false);

	(void)state;
	x->batch.claim.items[0].attempts = 9; /* the last try */
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 1);
	answer(x, "r", 0);
	assert_outcomes(x, "frr");
	land(x);
	/* rejected, it would be rejected again: nothing to wait for */
	x = fly(keys, 3, WIRE_ROUNDS, false);
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 1);
	answer(x, "j", 0);
	assert_outcomes(x, "f..");
	land(x);
	x = fly(keys, 3, WIRE_ROUNDS, true);
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 1);
	answer(x, "j", 0);
	assert_outcomes(x, "fpp");
	land(x);
}

static void what_is_not_due_is_never_returned(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	(void)state;
	assert_int_equal(batch_init(&x->batch, 1 << 20, NULL), OUTBOX_OK);
	x->batch.claim.count = 2;
	x->batch.claim.items = outbox_arena_alloc(x->batch.arena, 2 * sizeof(*x->batch.claim.items));
	x->batch.claim.store_now = 1000;
	x->batch.claim.items[1].message.due_at = 1001;
	assert_int_equal(batch_begin(&x->batch, WIRE_ROUNDS, NULL), OUTBOX_OK);
	batch_return_rest(&x->batch);
	assert_outcomes(x, "rt");
	land(x);
}

static void unordered_keys_mean_nothing(void **state)
{
	const char *const keys[] = { "a", "a" };
	struct fixture *x = fly(keys, 2, WIRE_UNORDERED, false);

	(void)state;
	assert_int_equal(batch_next_round(&x->batch, &x->context, 0), 2);
	answer(x, "ra", 0);
	assert_outcomes(x, "wd");
	land(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_go_on_key_by_key),
		cmocka_unit_test(together_everything_leaves_at_once),
		cmocka_unit_test(together_a_rejected_message_lets_its_key_go_on),
		cmocka_unit_test(together_a_blocked_message_parks_the_rest_of_its_key),
		cmocka_unit_test(a_lost_connection_returns_the_rest),
		cmocka_unit_test(behind_a_failure_the_key_waits_until_it_is_written_down),
		cmocka_unit_test(what_is_not_due_is_never_returned),
		cmocka_unit_test(unordered_keys_mean_nothing),
	};

	return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
