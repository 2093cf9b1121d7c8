/* SPDX-License-Identifier: Apache-2.0 */

/* The history of failed attempts: one row for each, bounded, gone with its delivery. */

#include "store/store.h"
#include "store_world.h"

#include <outbox/transport.h>

#include <stdio.h>

static int64_t publish(struct store_world *w, const char *id)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "t";
	m.id = id;
	m.data = "{}";
	m.size = 2;
	return world_publish_message(w, &m);
}

static void note_answer(struct worker *k, size_t i, int verdict, int native, const char *answer)
{
	k->settled[i].attempt = k->claim.items[i].attempts + 1;
	k->settled[i].verdict = verdict;
	k->settled[i].native = native;
	k->settled[i].answer = answer;
}

/* One message is claimed and is to be tried again at once. */
static void try_in_vain(struct worker *k, const char *error)
{
	assert_int_equal(worker_advance(k, 1), 1);
	settle_wait(k, 0, 0);
	k->settled[0].error = error;
	note_answer(k, 0, OUTBOX_RETRY, 503, "busy\nvery");
	worker_advance(k, 0);
}

static size_t history(struct store_world *w, const char *id, struct outbox_attempt **ret_rows)
{
	size_t count = 99;

	OK(store_attempts(w->store, id, w->arena, ret_rows, &count, &w->err));
	return count;
}

static void failed_tries_are_kept_with_what_was_said(struct store_world *w)
{
	struct outbox_attempt *rows;
	outbox_time first = world_now(w);
	struct worker *k;

	world_target(w, "a");
	world_target(w, "b");
	publish(w, "m1");
	publish(w, "m2");
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 2), 2);
	settle_wait(k, 0, SEC);
	note_answer(k, 0, OUTBOX_RETRY, 503, "busy\nvery");
	worker_advance(k, 0);
	world_step(w, SEC);
	assert_int_equal(worker_advance(k, 1), 1);
	settle_fail(k, 0);
	note_answer(k, 0, OUTBOX_REJECTED, -7, NULL);
	worker_advance(k, 0);
	k = worker_start(w, "k2", "b", 0);
	assert_int_equal(worker_advance(k, 1), 1);
	settle_suspect(k, 0, SEC);
	note_answer(k, 0, OUTBOX_UNKNOWN, 0, NULL);
	worker_advance(k, 0);

	assert_int_equal(history(w, "m1", &rows), 3);
	assert_string_equal(rows[0].target, "a");
	assert_int_equal(rows[0].at, first);
	assert_int_equal(rows[0].attempt, 1);
	assert_int_equal(rows[0].verdict, OUTBOX_RETRY);
	assert_int_equal(rows[0].native, 503);
	assert_string_equal(rows[0].reason, "try again");
	assert_string_equal(rows[0].answer, "busy\nvery");
	assert_string_equal(rows[1].target, "a");
	assert_int_equal(rows[1].at, first + SEC);
	assert_int_equal(rows[1].attempt, 2);
	assert_int_equal(rows[1].verdict, OUTBOX_REJECTED);
	assert_int_equal(rows[1].native, -7);
	assert_string_equal(rows[1].reason, "will never do");
	assert_null(rows[1].answer);
	assert_string_equal(rows[2].target, "b");
	assert_int_equal(rows[2].attempt, 1);
	assert_int_equal(rows[2].verdict, OUTBOX_UNKNOWN);
	assert_int_equal(history(w, "m2", &rows), 0);
	assert_int_equal(history(w, "nobody", &rows), 0);
}

/* The engine says which outcomes were tries: what waits or fails without one has no row. */
static void what_was_not_tried_has_none(struct store_world *w)
{
	struct outbox_attempt *rows;
	struct worker *k;

	world_target(w, "a");
	publish(w, "m1");
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 1), 1);
	settle_fail(k, 0); /* expired, say */
	worker_advance(k, 0);
	assert_int_equal(history(w, "m1", &rows), 0);
}

/* The first one says how it began, the last ones how it is. */
static void the_first_and_the_last_ones_are_kept(struct store_world *w)
{
	struct outbox_attempt *rows;
	char error[20];
	struct worker *k;

	world_target(w, "a");
	publish(w, "m1");
	k = worker_start(w, "k", "a", 0);
	for (int i = 1; i <= 30; i++) {
		snprintf(error, sizeof(error), "no. %d", i);
		try_in_vain(k, error);
		assert_int_equal(history(w, "m1", &rows),
				 i < OUTBOX_ATTEMPTS_KEPT ? i : OUTBOX_ATTEMPTS_KEPT);
	}
	assert_string_equal(rows[0].reason, "no. 1");
	assert_string_equal(rows[1].reason, "no. 12");
	assert_string_equal(rows[OUTBOX_ATTEMPTS_KEPT - 1].reason, "no. 30");
}

static void a_repeated_settlement_adds_none(struct store_world *w)
{
	struct outbox_attempt *rows;
	struct worker *k;

	world_target(w, "a");
	publish(w, "m1");
	k = worker_start(w, "k", "a", 0);
	try_in_vain(k, "no");
	OK(worker_repeat(k));
	assert_int_equal(history(w, "m1", &rows), 1);
}

/* Its answer was lost; meanwhile an operator gave the delivery up, and its text was taken away. */
static void a_repeated_settlement_brings_nothing_back(struct store_world *w)
{
	struct outbox_redact redact = { .struct_size = sizeof(redact), .id = "m1", .reason = "asked" };
	struct outbox_attempt *rows;
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	seq = publish(w, "m1");
	k = worker_start(w, "k", "a", 0);
	try_in_vain(k, "no such street: St James's Square");
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", seq).done, 1);
	OK(store_redact(w->store, &redact, NULL, &w->err));
	OK(worker_repeat(k));
	assert_int_equal(history(w, "m1", &rows), 1);
	assert_null(rows[0].reason);
	assert_null(rows[0].answer);
	assert_int_equal(rows[0].native, 503);
}

static void a_fenced_one_adds_none(struct store_world *w)
{
	struct outbox_attempt *rows;
	struct worker *k;

	world_target(w, "a");
	publish(w, "m1");
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 1), 1);
	settle_wait(k, 0, 0);
	note_answer(k, 0, OUTBOX_RETRY, 1, NULL);
	world_step(w, 2 * LEASE);
	worker_start(w, "other", "a", 0);
	assert_int_equal(worker_try_advance(k, 0, BYTES), OUTBOX_EFENCED);
	assert_int_equal(history(w, "m1", &rows), 0);
}

static void a_requeue_keeps_it(struct store_world *w)
{
	struct outbox_attempt *rows;
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	seq = publish(w, "m1");
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 1), 1);
	settle_fail(k, 0);
	note_answer(k, 0, OUTBOX_REJECTED, 1, NULL);
	worker_advance(k, 0);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", seq).done, 1);
	assert_int_equal(history(w, "m1", &rows), 1);
	try_in_vain(k, "again");
	assert_int_equal(history(w, "m1", &rows), 2);
	assert_int_equal(rows[1].attempt, 1);
	assert_drains(k, 1, seq);
	assert_int_equal(history(w, "m1", &rows), 2);
}

static void a_purge_takes_it(struct store_world *w)
{
	struct outbox_purge purge;
	struct outbox_attempt *rows;
	struct worker *k;

	world_target(w, "a");
	publish(w, "m1");
	publish(w, "m2");
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 2), 2);
	settle_wait(k, 0, 0);
	note_answer(k, 0, OUTBOX_RETRY, 1, NULL);
	settle_fail(k, 1);
	note_answer(k, 1, OUTBOX_REJECTED, 1, NULL);
	worker_advance(k, 2);
	worker_advance(k, 0);
	world_step(w, 10 * SEC);
	purge = (struct outbox_purge){ .delivered_before = world_now(w) };
	assert_int_equal(world_purge(w, &purge).messages, 1);
	publish(w, "m1");
	assert_int_equal(history(w, "m1", &rows), 0);
	assert_int_equal(history(w, "m2", &rows), 1);
}

/* A target of the same name that comes later has no past. */
static void a_dropped_target_takes_it(struct store_world *w)
{
	struct outbox_attempt *rows;

	world_target(w, "a");
	world_target(w, "b");
	publish(w, "m1");
	try_in_vain(worker_start(w, "k", "a", 0), "no");
	try_in_vain(worker_start(w, "l", "b", 0), "no");
	OK(store_target_drop(w->store, "a", "me", "gone", &w->err));
	assert_int_equal(history(w, "m1", &rows), 1);
	assert_string_equal(rows[0].target, "b");
	world_target(w, "a");
	assert_int_equal(history(w, "m1", &rows), 1);
}

static void a_truncated_log_has_none(struct store_world *w)
{
	struct outbox_attempt *rows;

	world_target(w, "a");
	publish(w, "m1");
	try_in_vain(worker_start(w, "k", "a", 0), "no");
	OK(store_truncate(w->store, &w->err));
	publish(w, "m1");
	assert_int_equal(history(w, "m1", &rows), 0);
}

/* clang-format off */
#define CASE(name) { #name, name, 0, 0 }
/* clang-format on */

const struct store_case attempt_cases[] = {
	CASE(failed_tries_are_kept_with_what_was_said),
	CASE(what_was_not_tried_has_none),
	CASE(the_first_and_the_last_ones_are_kept),
	CASE(a_repeated_settlement_adds_none),
	CASE(a_repeated_settlement_brings_nothing_back),
	CASE(a_fenced_one_adds_none),
	CASE(a_requeue_keeps_it),
	CASE(a_purge_takes_it),
	CASE(a_dropped_target_takes_it),
	CASE(a_truncated_log_has_none),
	{ NULL, NULL, 0, 0 },
};
