/* SPDX-License-Identifier: Apache-2.0 */

/* Corrections: a message that was delivered nowhere gets another payload and keeps its place. */

#include "store/store.h"
#include "store_world.h"

#include <stdio.h>

#define WRONG "{\"total\":-1}"
#define RIGHT "{\"total\":1}"

static int try_amend(struct store_world *w, const char *id, const char *data, const char *reason,
		     struct outbox_amended *ret_amended)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_amend amend = { .struct_size = sizeof(amend),
				      .id = id,
				      .actor = "anna",
				      .reason = reason,
				      .message = &m };

	m.data = data;
	m.size = strlen(data);
	return store_amend(w->store, &amend, ret_amended, &w->err);
}

static struct outbox_amended amend(struct store_world *w, const char *id, const char *data)
{
	struct outbox_amended amended = { -1, -1 };

	OK(try_amend(w, id, data, "negative total", &amended));
	return amended;
}

static void assert_refused(struct store_world *w, const char *id, const char *why)
{
	const char *before = world_picture(w);

	assert_int_equal(try_amend(w, id, RIGHT, "x", NULL), OUTBOX_ECONFLICT);
	assert_non_null(strstr(w->err.message, why));
	assert_string_equal(world_picture(w), before);
}

static int64_t publish(struct store_world *w, const char *id, const char *key)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "order.placed";
	m.id = id;
	m.key = key;
	m.data = WRONG;
	m.size = strlen(WRONG);
	return world_publish_message(w, &m);
}

static void assert_payload(const struct outbox_message *m, const char *data)
{
	assert_int_equal(m->size, strlen(data));
	assert_memory_equal(m->data, data, m->size);
}

static struct outbox_claimed get(struct store_world *w, const char *id)
{
	struct outbox_claimed found = { 0 };

	OK(store_get(w->store, id, w->arena, &found, &w->err));
	return found;
}

static size_t amendments(struct store_world *w, const char *id, struct outbox_amendment **ret_rows)
{
	size_t count = 99;

	OK(store_amendments(w->store, id, w->arena, ret_rows, &count, &w->err));
	return count;
}

static void target_with_hold(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");

	def.hold = true;
	world_target_put(w, &def);
}

/* With hold: the first of its key failed, the others wait behind it. */
static void a_corrected_one_goes_first(struct store_world *w)
{
	struct outbox_amended amended;
	int64_t first, last;
	struct worker *k;

	target_with_hold(w);
	first = publish(w, "m1", "k");
	publish(w, "m2", "k");
	publish(w, "m3", "k");
	last = publish(w, "m4", "k");
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 1), 1);
	settle_fail(k, 0);
	worker_advance(k, 0);
	assert_drains(k, 0);
	assert_state(w, "a", last, OUTBOX_PENDING, OUTBOX_PARKED);
	amended = amend(w, "m1", RIGHT);
	assert_int_equal(amended.requeued, 1);
	assert_int_equal(amended.parked, 3);
	assert_state(w, "a", first, OUTBOX_PENDING, OUTBOX_WAITING);
	assert_int_equal(world_row(w, "a", first)->attempts, 0);
	assert_null(world_row(w, "a", first)->error);
	assert_int_equal(worker_advance(k, 4), 4);
	assert_claim(k, 4, first, first + 1, first + 2, last);
	assert_payload(&k->claim.items[0].message, RIGHT);
	assert_payload(&k->claim.items[1].message, WRONG);
	assert_string_equal(k->claim.items[0].message.id, "m1");
	assert_string_equal(k->claim.items[0].message.key, "k");
	worker_advance(k, 0);
	assert_state(w, "a", last, OUTBOX_DELIVERED, 0);
}

/* Nobody has tried yet, or somebody will again: it goes as it is now. */
static void what_waits_goes_as_it_is_now(struct store_world *w)
{
	int64_t first, second;
	struct worker *k;

	world_target(w, "a");
	first = publish(w, "m1", "k");
	assert_int_equal(amend(w, "m1", RIGHT).requeued, 0); /* new */
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	assert_payload(&k->claim.items[0].message, RIGHT);
	settle_wait(k, 0, 100 * SEC);
	worker_advance(k, 0);
	second = publish(w, "m2", "k");
	assert_drains(k, 0);
	assert_state(w, "a", second, OUTBOX_PENDING, OUTBOX_PARKED);
	amend(w, "m2", RIGHT); /* parked: stays so */
	assert_state(w, "a", second, OUTBOX_PENDING, OUTBOX_PARKED);
	assert_int_equal(amend(w, "m1", WRONG).requeued, 1); /* and need not wait any more */
	assert_int_equal(worker_advance(k, 9), 2);
	assert_claim(k, 2, first, second);
	assert_int_equal(k->claim.items[0].attempts, 0);
	assert_payload(&k->claim.items[0].message, WRONG);
	assert_payload(&k->claim.items[1].message, RIGHT);
}

static void a_deferred_one_stays_deferred(struct store_world *w)
{
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	seq = publish(w, "m1", "k");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	settle_defer(k, 0, world_now(w) + 100 * SEC);
	worker_advance(k, 0);
	assert_int_equal(amend(w, "m1", RIGHT).requeued, 0);
	assert_drains(k, 0);
	world_step(w, 101 * SEC);
	worker_lease(k);
	assert_int_equal(worker_advance(k, 1), 1);
	assert_int_equal(k->claim.items[0].seq, seq);
	assert_payload(&k->claim.items[0].message, RIGHT);
}

/* A store may have read on while a claim was being sent. */
static void what_was_read_ahead_is_read_again(struct store_world *w)
{
	struct worker *k;
	char id[16];

	world_target(w, "a");
	for (int i = 1; i <= 12; i++) {
		snprintf(id, sizeof(id), "m%d", i);
		publish(w, id, NULL);
	}
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_advance(k, 3), 3);
	assert_int_equal(worker_advance(k, 3), 3); /* 4 to 6; 7 to 9 are read behind it */
	amend(w, "m8", RIGHT);
	assert_int_equal(worker_advance(k, 3), 3);
	assert_payload(&k->claim.items[0].message, WRONG);
	assert_payload(&k->claim.items[1].message, RIGHT);
	assert_payload(&k->claim.items[2].message, WRONG);
	assert_int_equal(worker_advance(k, 3), 3);
	worker_advance(k, 0);
}

static void nothing_that_was_delivered(struct store_world *w)
{
	struct outbox_amendment *was;
	struct outbox_claimed now;
	struct worker *a, *b;
	int64_t seq;

	assert_int_equal(try_amend(w, "nobody", RIGHT, "x", NULL), OUTBOX_ENOTFOUND);
	seq = publish(w, "m1", "k");
	assert_refused(w, "m1", "none of its deliveries is left"); /* no target */
	world_target(w, "a");
	world_target(w, "b");
	assert_int_equal(try_amend(w, "m1", RIGHT, "", NULL), OUTBOX_EINVAL);
	a = worker_start(w, "k", "a", 0);
	worker_advance(a, 1);
	assert_refused(w, "m1", "being sent to a right now");
	settle_fail(a, 0);
	worker_advance(a, 0);
	b = worker_start(w, "k", "b", 0);
	assert_drains(b, 1, seq);
	assert_refused(w, "m1", "delivered to b");
	now = get(w, "m1");
	assert_payload(&now.message, WRONG);
	assert_int_equal(amendments(w, "m1", &was), 0);
}

static void nothing_that_is_given_up(struct store_world *w)
{
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	world_target(w, "b");
	seq = publish(w, "m1", "k");
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", seq).done, 1);
	assert_int_equal(amend(w, "m1", RIGHT).requeued, 0); /* b still gets it */
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "b", seq).done, 1);
	assert_refused(w, "m1", "none of its deliveries is left");
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 0);
}

/* Its owner is gone: as for every other act, the lane is taken over, so that it can settle nothing any more. */
static void what_a_dead_owner_had_in_flight(struct store_world *w)
{
	struct worker *dead, *next;
	int64_t seq;

	world_target(w, "a");
	seq = publish(w, "m1", "k");
	dead = worker_start(w, "dead", "a", 0);
	worker_advance(dead, 1);
	world_step(w, LEASE + SEC);
	amend(w, "m1", RIGHT);
	assert_int_equal(worker_try_advance(dead, 1, BYTES), OUTBOX_EFENCED);
	next = worker_start(w, "next", "a", 0);
	assert_int_equal(worker_advance(next, 1), 1);
	assert_int_equal(next->claim.items[0].seq, seq);
	assert_payload(&next->claim.items[0].message, RIGHT);
}

/* A dead letter is a report of a failure, not a delivery. */
static void a_dead_letter_is_no_delivery(struct store_world *w)
{
	struct outbox_target_def dead = target_def("dead"), a = target_def("a");
	struct worker *k, *morgue;
	int64_t seq;

	dead.route.nothing = true;
	world_target_put(w, &dead);
	a.dead_letter = "dead";
	world_target_put(w, &a);
	seq = publish(w, "m1", "k");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	settle_fail(k, 0);
	worker_advance(k, 0);
	morgue = worker_start(w, "k", "dead", 0);
	assert_drains(morgue, 1, seq);
	assert_int_equal(amend(w, "m1", RIGHT).requeued, 1);
	assert_state(w, "dead", seq, OUTBOX_DELIVERED, 0);
	assert_int_equal(worker_advance(k, 1), 1);
	assert_payload(&k->claim.items[0].message, RIGHT);
	settle_fail(k, 0);
	worker_advance(k, 0);
	assert_int_equal(worker_advance(morgue, 1), 1); /* it failed once more: told once more */
	assert_payload(&morgue->claim.items[0].message, RIGHT);
}

static void what_it_was_is_kept(struct store_world *w)
{
	static const struct outbox_header headers[] = { { "tenant", "acme" } };
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_amend bytes = {
		.struct_size = sizeof(bytes), .id = "m1", .reason = "a picture", .message = &m
	};
	struct outbox_amendment *was;
	struct outbox_claimed now;

	world_target(w, "a");
	publish(w, "m1", "k");
	publish(w, "m2", "l");
	world_step(w, SEC);
	amend(w, "m1", RIGHT);
	m.content_type = "image/png";
	m.data = "\x89PNG\0\xff";
	m.size = 6;
	m.headers = headers;
	m.n_headers = 1;
	OK(store_amend(w->store, &bytes, NULL, &w->err));
	now = get(w, "m1");
	assert_int_equal(now.message.size, 6);
	assert_memory_equal(now.message.data, m.data, 6);
	assert_string_equal(now.message.content_type, "image/png");
	assert_string_equal(now.message.headers[0].value, "acme");
	amend(w, "m1", "\"once more\"");
	assert_int_equal(get(w, "m1").message.n_headers, 0);
	assert_string_equal(get(w, "m1").message.content_type, "application/json");
	assert_int_equal(amendments(w, "m1", &was), 3);
	assert_int_equal(was[0].size, strlen(WRONG));
	assert_memory_equal(was[0].data, WRONG, was[0].size);
	assert_false(was[0].bytes);
	assert_null(was[0].content_type);
	assert_null(was[0].headers);
	assert_string_equal(was[0].actor, "anna");
	assert_string_equal(was[0].reason, "negative total");
	assert_memory_equal(was[1].data, RIGHT, was[1].size);
	assert_null(was[1].actor);
	assert_true(was[2].bytes);
	assert_int_equal(was[2].size, 6);
	assert_memory_equal(was[2].data, m.data, 6);
	assert_string_equal(was[2].content_type, "image/png");
	assert_non_null(strstr(was[2].headers, "acme"));
	assert_int_equal(amendments(w, "m2", &was), 0);
	assert_int_equal(amendments(w, "nobody", &was), 0);
}

static void it_is_audited(struct store_world *w)
{
	struct outbox_audit *rows;
	struct worker *k;
	size_t count;

	world_target(w, "a");
	publish(w, "m1", "k");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	settle_fail(k, 0);
	worker_advance(k, 0);
	amend(w, "m1", RIGHT);
	OK(store_audit(w->store, "m1", 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 2);
	assert_string_equal(rows[1].action, "amend");
	assert_null(rows[1].target);
	assert_string_equal(rows[1].actor, "anna");
	assert_string_equal(rows[1].reason, "negative total");
	assert_string_equal(rows[0].action, "requeue");
	assert_string_equal(rows[0].target, "a");
	assert_string_equal(rows[0].reason, "negative total");
	assert_non_null(rows[0].detail); /* the error that it had */
}

/* It may be personal, as what it became. */
static void it_goes_with_a_redaction_and_with_retention(struct store_world *w)
{
	struct outbox_redact redact = {
		.struct_size = sizeof(redact), .id = "m1", .actor = "anna", .reason = "asked for"
	};
	struct outbox_purge purge = { .delivered_before = 0 };
	struct outbox_amendment *was;
	int64_t seqs[4];
	struct worker *k;

	world_target(w, "a");
	publish(w, "m1", "k");
	publish(w, "m2", "l");
	amend(w, "m1", RIGHT);
	amend(w, "m2", RIGHT);
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_drain(k, seqs, 4), 2);
	OK(store_redact(w->store, &redact, NULL, &w->err));
	assert_int_equal(amendments(w, "m1", &was), 0);
	assert_int_equal(amendments(w, "m2", &was), 1);
	assert_refused(w, "m1", "");
	world_step(w, 10 * SEC);
	purge.delivered_before = world_now(w);
	assert_int_equal(world_purge(w, &purge).messages, 2);
	publish(w, "m2", "l"); /* an id of its own, once more */
	assert_int_equal(amendments(w, "m2", &was), 0);
}

#define CASE(name, lanes)             \
	{                             \
#name, name, lanes, 0 \
	}
const struct store_case amend_cases[] = {
	CASE(a_corrected_one_goes_first, 1),
	CASE(what_waits_goes_as_it_is_now, 1),
	CASE(a_deferred_one_stays_deferred, 1),
	CASE(what_was_read_ahead_is_read_again, 1),
	CASE(nothing_that_was_delivered, 1),
	CASE(nothing_that_is_given_up, 1),
	CASE(what_a_dead_owner_had_in_flight, 1),
	CASE(a_dead_letter_is_no_delivery, 1),
	CASE(what_it_was_is_kept, 1),
	CASE(it_is_audited, 1),
	CASE(it_goes_with_a_redaction_and_with_retention, 1),
	{ NULL, NULL, 0, 0 },
};
