/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/confirms.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "base/unit_test.h"

#include <outbox/arena.h>

#include <stdio.h>
#include <stdlib.h>

#define N 6

struct world {
	struct confirms confirms;
	struct outbox_message messages[N];
	struct outbox_item items[N], *pointers[N];
	struct outbox_batch batch;
	char ids[N][8];
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->confirms = (struct confirms)CONFIRMS_INIT;
	w->batch.memory = outbox_arena_new(1 << 20);
	w->batch.items = w->pointers;
	w->batch.count = N;
	for (int i = 0; i < N; i++) {
		snprintf(w->ids[i], sizeof(w->ids[i]), "m%d", i);
		w->messages[i].id = w->ids[i];
		w->items[i].message = &w->messages[i];
		w->pointers[i] = &w->items[i];
	}
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	confirms_deinit(&w->confirms);
	outbox_arena_free(w->batch.memory);
	free(w);
	return 0;
}

/* All messages of a new batch are sent; the tag of the first. */
static uint64_t send_all(struct world *w)
{
	uint64_t first = 0;

	for (size_t i = 0; i < N; i++)
		w->items[i].verdict = OUTBOX_VERDICT_UNSET;
	assert_ok(confirms_begin(&w->confirms, &w->batch, err));
	for (size_t i = 0; i < N; i++) {
		uint64_t tag = confirms_send(&w->confirms, i);

		first = first ? first : tag;
		assert_int_equal(tag, first + i);
	}
	assert_int_equal(w->confirms.open, N);
	return first;
}

/* "A.R?--": acked, unset, retry (refused), unknown ... one letter a message */
static void assert_verdicts(const struct world *w, const char *wanted)
{
	char got[N + 1] = "";

	for (size_t i = 0; i < N; i++)
		got[i] = ".AXR?"[w->items[i].verdict];
	assert_string_equal(got, wanted);
}

static void test_single(void **state)
{
	struct world *w = *state;

	assert_int_equal(send_all(w), 1);
	assert_ok(confirms_ack(&w->confirms, 3, false, err));
	assert_verdicts(w, "..A...");
	assert_ok(confirms_nack(&w->confirms, 6, false, err));
	assert_ok(confirms_ack(&w->confirms, 1, false, err));
	assert_verdicts(w, "A.A..R");
	assert_string_equal(w->items[5].reason, "refused by the broker (nack)");
	assert_null(w->items[0].reason);
	assert_int_equal(w->confirms.open, 3);
	assert_int_equal(confirms_finish(&w->confirms), 3);
	assert_verdicts(w, "A?A??R");
	assert_string_equal(w->items[1].reason, "not confirmed by the broker");
}

static void test_multiple(void **state)
{
	struct world *w = *state;

	send_all(w);
	assert_ok(confirms_nack(&w->confirms, 2, false, err));
	assert_ok(confirms_ack(&w->confirms, 5, false, err));
	assert_ok(confirms_ack(&w->confirms, 3, true, err));
	assert_verdicts(w, "ARA.A.");
	assert_int_equal(w->confirms.open, 2);
	assert_ok(confirms_nack(&w->confirms, 6, true, err));
	assert_verdicts(w, "ARARAR");
	assert_int_equal(w->confirms.open, 0);
	assert_int_equal(confirms_finish(&w->confirms), 0);
	assert_false(w->confirms.unclean);
}

static void test_multiple_of_all(void **state)
{
	struct world *w = *state;

	assert_ok(confirms_ack(&w->confirms, 0, true, err)); /* of nothing */
	assert_ok(confirms_begin(&w->confirms, &w->batch, err));
	assert_ok(confirms_ack(&w->confirms, 0, true, err));
	confirms_send(&w->confirms, 0);
	confirms_send(&w->confirms, 1);
	assert_ok(confirms_ack(&w->confirms, 0, true, err));
	assert_verdicts(w, "AA....");
	assert_int_equal(w->confirms.open, 0);
}

static void test_tag_never_sent(void **state)
{
	struct world *w = *state;

	send_all(w);
	assert_fails(confirms_ack(&w->confirms, 7, false, err), OUTBOX_EPROTO,
		     "answered message 7 of a channel that sent 6");
	assert_fails(confirms_ack(&w->confirms, 7, true, err), OUTBOX_EPROTO, "message 7");
	assert_fails(confirms_nack(&w->confirms, UINT64_MAX, true, err), OUTBOX_EPROTO, "1844674407");
	assert_fails(confirms_ack(&w->confirms, 0, false, err), OUTBOX_EPROTO, "message 0");
	assert_fails(confirms_return(&w->confirms, 7, 312, "NO_ROUTE", err), OUTBOX_EPROTO, "7");
	assert_verdicts(w, "......");
	assert_int_equal(confirms_finish(&w->confirms), N);
	assert_verdicts(w, "??????");
}

static void test_repeated(void **state)
{
	struct world *w = *state;

	send_all(w);
	assert_ok(confirms_ack(&w->confirms, 2, false, err));
	assert_ok(confirms_ack(&w->confirms, 2, false, err));
	assert_ok(confirms_nack(&w->confirms, 2, false, err));
	assert_int_equal(w->confirms.open, N - 1);
	assert_ok(confirms_nack(&w->confirms, 4, true, err));
	assert_ok(confirms_ack(&w->confirms, 4, true, err));
	assert_verdicts(w, "RARR..");
	assert_int_equal(w->confirms.open, 2);
}

static void test_return_then_ack(void **state)
{
	struct world *w = *state;
	uint64_t tag = 0;

	send_all(w);
	assert_ok(confirms_find(&w->confirms, "m3", &tag, err));
	assert_int_equal(tag, 4);
	assert_ok(confirms_return(&w->confirms, tag, 312, "NO_ROUTE", err));
	assert_int_equal(w->confirms.open, N); /* its acknowledgement is waited for */
	assert_ok(confirms_ack(&w->confirms, 6, true, err));
	assert_verdicts(w, "AAARAA");
	assert_int_equal(w->items[3].native, 312);
	assert_string_equal(w->items[3].reason, "unroutable: NO_ROUTE");
	assert_int_equal(w->confirms.open, 0);
	/* too late for another */
	assert_ok(confirms_return(&w->confirms, 1, 312, "NO_ROUTE", err));
	assert_verdicts(w, "AAARAA");
}

static void test_return_without_ack(void **state)
{
	struct world *w = *state;

	send_all(w);
	assert_ok(confirms_return(&w->confirms, 2, 312, "NO_ROUTE", err));
	assert_int_equal(confirms_finish(&w->confirms), N - 1);
	assert_verdicts(w, "?R????");
}

static void test_return_by_id(void **state)
{
	struct world *w = *state;
	uint64_t tag = 99;

	assert_fails(confirms_find(&w->confirms, "m1", &tag, err), OUTBOX_EPROTO, "not on its way");
	send_all(w);
	assert_fails(confirms_find(&w->confirms, "other\n", &tag, err), OUTBOX_EPROTO, "other\\n");
	w->messages[4].id = "m1"; /* the same id twice: one return each */
	assert_ok(confirms_find(&w->confirms, "m1", &tag, err));
	assert_int_equal(tag, 2);
	assert_ok(confirms_return(&w->confirms, tag, 312, "NO_ROUTE", err));
	assert_ok(confirms_find(&w->confirms, "m1", &tag, err));
	assert_int_equal(tag, 5);
	assert_ok(confirms_ack(&w->confirms, 5, false, err));
	assert_fails(confirms_find(&w->confirms, "m1", &tag, err), OUTBOX_EPROTO, "not on its way");
	assert_int_equal(tag, 5);
}

/* The answers to a batch that was given up come while the next one is on its way. */
static void test_late(void **state)
{
	struct world *w = *state;
	uint64_t tag;

	send_all(w);
	assert_ok(confirms_ack(&w->confirms, 1, false, err));
	assert_int_equal(confirms_finish(&w->confirms), N - 1);
	assert_true(w->confirms.unclean);
	assert_int_equal(w->confirms.open, 0);
	assert_ok(confirms_ack(&w->confirms, 2, false, err)); /* between two batches */
	assert_ok(confirms_return(&w->confirms, 3, 312, "NO_ROUTE", err));
	assert_verdicts(w, "A?????");
	assert_int_equal(send_all(w), 7);
	assert_ok(confirms_nack(&w->confirms, 4, false, err));
	assert_ok(confirms_return(&w->confirms, 5, 312, "NO_ROUTE", err));
	assert_ok(confirms_ack(&w->confirms, 6, true, err));
	assert_verdicts(w, "......");
	assert_int_equal(w->confirms.open, N);
	/* whose copy was returned? */
	assert_fails(confirms_find(&w->confirms, "m3", &tag, err), OUTBOX_EPROTO, "which copy");
	assert_ok(confirms_ack(&w->confirms, 8, true, err));
	assert_verdicts(w, "AA....");
}

static void test_new_channel(void **state)
{
	struct world *w = *state;
	uint64_t tag;

	send_all(w);
	confirms_finish(&w->confirms);
	assert_int_equal(send_all(w), 7);
	confirms_finish(&w->confirms);
	confirms_reset(&w->confirms);
	assert_int_equal(send_all(w), 1);
	assert_ok(confirms_find(&w->confirms, "m3", &tag, err));
	assert_fails(confirms_ack(&w->confirms, 7, true, err), OUTBOX_EPROTO, "sent 6");
	assert_ok(confirms_ack(&w->confirms, 1, false, err));
	assert_verdicts(w, "A.....");
}

/* What the driver refused itself has no tag, and what was not sent has no answer. */
static void test_not_sent(void **state)
{
	struct world *w = *state;

	assert_ok(confirms_begin(&w->confirms, &w->batch, err));
	assert_int_equal(confirms_send(&w->confirms, 0), 1);
	outbox_batch_verdict(&w->batch, 1, OUTBOX_REJECTED, 0, "too large");
	assert_int_equal(confirms_send(&w->confirms, 2), 2);
	assert_int_equal(confirms_send(&w->confirms, 4), 3);
	assert_ok(confirms_ack(&w->confirms, 2, false, err));
	assert_ok(confirms_nack(&w->confirms, 3, false, err));
	assert_verdicts(w, ".XA.R.");
	assert_int_equal(confirms_finish(&w->confirms), 1);
	assert_verdicts(w, "?XA.R.");
	assert_int_equal(confirms_finish(&w->confirms), 0); /* twice is once */
	assert_ok(confirms_begin(&w->confirms, &w->batch, err));
	assert_int_equal(confirms_send(&w->confirms, 0), 4);
}

/* Against the plainest bookkeeping there is: one cell a tag. */
static void test_like_a_plain_table(void **state)
{
	static const int verdicts[] = { OUTBOX_ACKED, OUTBOX_RETRY };
	struct world *w = *state;
	struct random_state random;
	struct outbox_random *r = &random.base;

	random_init(&random, 7);
	for (int round = 0; round < 2000; round++) {
		uint64_t first = send_all(w);
		int table[N] = { 0 };
		bool returned[N] = { false };

		for (int64_t answers = random_between(r, 0, 9); answers > 0; answers--) {
			uint64_t tag = first + (uint64_t)random_between(r, 0, N - 1);
			bool multiple = random_between(r, 0, 1);
			int kind = (int)random_between(r, 0, 2);

			if (kind == 2) {
				returned[tag - first] |= !table[tag - first];
				assert_ok(confirms_return(&w->confirms, tag, 312, "", err));
				continue;
			}
			assert_ok((kind ? confirms_nack : confirms_ack)(&w->confirms, tag, multiple,
									err));
			for (size_t i = multiple ? 0 : tag - first; i <= tag - first; i++)
				table[i] = table[i] ? table[i] : verdicts[kind];
		}
		confirms_finish(&w->confirms);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(w->items[i].verdict, returned[i] ? OUTBOX_RETRY
							      : table[i]  ? table[i]
									  : OUTBOX_UNKNOWN);
		outbox_arena_reset(w->batch.memory);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
		TEST(test_single),
		TEST(test_multiple),
		TEST(test_multiple_of_all),
		TEST(test_tag_never_sent),
		TEST(test_repeated),
		TEST(test_return_then_ack),
		TEST(test_return_without_ack),
		TEST(test_return_by_id),
		TEST(test_late),
		TEST(test_new_channel),
		TEST(test_not_sent),
		TEST(test_like_a_plain_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
