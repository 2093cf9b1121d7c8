/* SPDX-License-Identifier: Apache-2.0 */
/* Positions that belong to another history: refused, for as long as nobody rebases, and repaired without loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/postgres/place_test.h"
#include "store/store.h"

static void ignore(void *context, int level, const char *subject, const char *text)
{
	(void)context, (void)level, (void)subject, (void)text;
}

static void rebase(struct place *p)
{
	const struct outbox_rebase how = { .struct_size = sizeof(how), .actor = "me" };

	assert_int_equal(pg_rebase(p->store, &how, ignore, NULL, &p->err), OUTBOX_OK);
}

static int take_lane(struct place *p, struct outbox_head *head)
{
	return pg_take_over(p->store, "events", 0, "me", ++p->token, head, &p->err);
}

static int advance(struct place *p, const struct outbox_head *head)
{
	struct outbox_claim claim;

	outbox_arena_reset(p->arena);
	return store_settle_and_claim(p->store,
				      &(struct outbox_settle_and_claim){ .target = "events",
									 .owner = "me",
									 .n = head->n,
									 .fence_token =
										 head->fence_token,
									 .new_token = ++p->token,
									 .route_version = 1,
									 .max_messages = 100,
									 .max_bytes = 1000000 },
				      p->arena, &claim, &p->err);
}

/* Five are delivered and gone; somebody has the lane. */
static struct outbox_head five_gone(struct place *p)
{
	struct outbox_head head = { 0 };

	place_publish(p, 5);
	assert_int_equal(place_drain(p, "events"), 5);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	assert_int_equal(place_purge(p, OUTBOX_HOURS).messages, 5);
	assert_int_equal(take_lane(p, &head), OUTBOX_OK);
	return head;
}

static void set_counter(struct place *p, int last)
{
	place_sql(p, "SELECT setval('outbox_message_seq_seq', %d, %s)", last ? last : 1,
		  last ? "true" : "false");
}

static void a_refusal_stays(void **state)
{
	struct place *p = *state;
	struct outbox_head head = five_gone(p);

	set_counter(p, 0);
	assert_int_equal(advance(p, &head), OUTBOX_EPROTO);
	set_counter(p, 5); /* as if nothing had been: who knows what was */
	assert_int_equal(advance(p, &head), OUTBOX_EPROTO);
	assert_int_equal(take_lane(p, &head), OUTBOX_EPROTO);
	rebase(p);
	assert_int_equal(take_lane(p, &head), OUTBOX_OK);
	assert_int_equal(advance(p, &head), OUTBOX_OK);
}

static void numbers_given_again_are_seen_by_who_has_the_lane(void **state)
{
	struct place *p = *state;
	struct outbox_head head = five_gone(p);

	set_counter(p, 0);
	place_publish(p, 8);
	assert_int_equal(advance(p, &head), OUTBOX_EPROTO);
	assert_int_equal(place_number(p,
				      "SELECT count(*) FROM outbox_lane WHERE refused IS NOT NULL"),
			 1);
}

static void numbers_given_again_are_seen_by_who_takes_the_lane(void **state)
{
	struct place *p = *state;
	struct outbox_head head = five_gone(p);

	set_counter(p, 0);
	place_publish(p, 8);
	assert_int_equal(take_lane(p, &head), OUTBOX_EPROTO);
	rebase(p);
	assert_int_equal(place_drain(p, "events"), 8);
	place_publish(p, 2);
	assert_int_equal(place_drain(p, "events"), 2);
}

static void nothing_is_purged_meanwhile(void **state)
{
	struct place *p = *state;

	five_gone(p);
	set_counter(p, 0);
	place_publish(p, 8);
	frozen_clock_step(&p->clock, OUTBOX_DAYS);
	assert_int_equal(place_purge(p, 0).messages, 0);
}

/* The transactions of a position may be another server's: above its place it says nothing. */
static void above_the_position_nothing_is_settled(void **state)
{
	struct place *p = *state;

	five_gone(p);
	place_sql(p,
		  "UPDATE outbox_receipt SET prev = '90000000:90000000:', cur = '90000000:90000000:'");
	place_publish(p, 3);
	assert_int_equal(place_drain(p, "events"), 3);
}

/* It was refused because the log ended before it, which nothing shows any more, and the server is another one: what has its
 * numbers is new, whatever its transactions. Nobody reads that out of the words. */
static void the_end_of_the_log_was_why(void **state)
{
	struct place *p = *state;
	struct outbox_head head = five_gone(p);

	set_counter(p, 0);
	assert_int_equal(advance(p, &head), OUTBOX_EPROTO);
	place_sql(p, "UPDATE outbox_lane SET refused = 'in other words' WHERE refused IS NOT NULL");
	place_publish(p, 8);
	place_sql(p,
		  "UPDATE outbox_receipt SET prev = '90000000:90000000:', cur = '90000000:90000000:'");
	place_sql(p, "UPDATE outbox_meta SET value = '4711' WHERE name = 'cluster'");
	assert_int_equal(take_lane(p, &head), OUTBOX_EPROTO);
	assert_string_equal(p->err.message, "in other words; run: outbox realign");
	rebase(p);
	assert_int_equal(place_drain(p, "events"), 8);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_refusal_stays),
		CASE(numbers_given_again_are_seen_by_who_has_the_lane),
		CASE(numbers_given_again_are_seen_by_who_takes_the_lane),
		CASE(nothing_is_purged_meanwhile),
		CASE(above_the_position_nothing_is_settled),
		CASE(the_end_of_the_log_was_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
