/* SPDX-License-Identifier: Apache-2.0 */

/* Redaction: what may be personal goes from a finished message, and nothing else changes. */

#include "store_world.h"

#include "core/key_hash.h"
#include "store/store.h"

#include <stdio.h>

static int redact(struct store_world *w, const char *id, const char *reason, bool *ret_done)
{
	struct outbox_redact r = {
		.struct_size = sizeof(r), .id = id, .actor = "anna", .reason = reason
	};

	return store_redact(w->store, &r, ret_done, &w->err);
}

static int64_t publish(struct store_world *w, const char *id, const char *key)
{
	static const struct outbox_header headers[] = { { "customer", "Ada Lovelace" } };
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "customer.moved";
	m.id = id;
	m.key = key;
	m.subject = "ada@example.org";
	m.data = "{\"street\":\"12 St James's Square\"}";
	m.size = strlen(m.data);
	m.headers = headers;
	m.n_headers = 1;
	return world_publish_message(w, &m);
}

static struct outbox_claimed get(struct store_world *w, const char *id)
{
	struct outbox_claimed found = { 0 };

	OK(store_get(w->store, id, w->arena, &found, &w->err));
	return found;
}

static void assert_tombstone(struct store_world *w, const char *id)
{
	struct outbox_claimed found = get(w, id);

	assert_null(found.malformed);
	assert_int_equal(found.message.size, strlen(OUTBOX_REDACTED));
	assert_memory_equal(found.message.data, OUTBOX_REDACTED, found.message.size);
	assert_int_equal(found.message.n_headers, 0);
	assert_null(found.message.subject);
	assert_string_equal(found.message.type, "customer.moved");
	assert_string_equal(found.message.content_type, "application/json");
	assert_string_equal(found.message.id, id);
}

static void what_is_personal_goes(struct store_world *w)
{
	struct outbox_claimed before;
	struct worker *k;
	bool done = false;
	int64_t seq;

	world_target(w, "a");
	seq = publish(w, "m1", "ada@example.org");
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, seq);
	before = get(w, "m1");
	OK(redact(w, "m1", "asked for", &done));
	assert_true(done);
	assert_tombstone(w, "m1");
	assert_null(strstr(get(w, "m1").message.key, "ada"));
	assert_int_equal(key_hash(get(w, "m1").message.key), key_hash("ada@example.org"));
	assert_int_equal(get(w, "m1").seq, before.seq);
	assert_int_equal(get(w, "m1").created_at, before.created_at);
	assert_int_equal(get(w, "m1").message.event_time, before.message.event_time);
	assert_state(w, "a", seq, OUTBOX_DELIVERED, 0);
	assert_null(strstr(world_picture(w), "ada"));
}

static void bytes_and_no_key(struct store_world *w)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	m.type = "customer.moved";
	m.id = "m1";
	m.content_type = "image/png";
	m.data = "\x89PNG\0\xff";
	m.size = 6;
	seq = world_publish_message(w, &m);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, seq);
	OK(redact(w, "m1", "asked for", NULL));
	assert_tombstone(w, "m1");
	assert_null(get(w, "m1").message.key);
}

static void only_when_all_is_finished(struct store_world *w)
{
	struct worker *a;
	int64_t seq;

	assert_int_equal(redact(w, "nobody", "x", NULL), OUTBOX_ENOTFOUND);
	seq = publish(w, "m1", "k");
	assert_int_equal(redact(w, "m1", "x", NULL), OUTBOX_ECONFLICT); /* it waits for a target */
	world_target(w, "a");
	world_target(w, "b");
	assert_int_equal(redact(w, "m1", "", NULL), OUTBOX_EINVAL);
	assert_int_equal(redact(w, "m1", "x", NULL), OUTBOX_ECONFLICT);
	a = worker_start(w, "k", "a", 0);
	worker_advance(a, 1);
	assert_int_equal(redact(w, "m1", "x", NULL), OUTBOX_ECONFLICT); /* in flight */
	settle_fail(a, 0);
	worker_advance(a, 0);
	assert_drains(worker_start(w, "k", "b", 0), 1, seq);
	assert_int_equal(redact(w, "m1", "x", NULL), OUTBOX_ECONFLICT);
	assert_non_null(strstr(w->err.message, "delivery to a is failed"));
	assert_non_null(strstr(w->err.message, "discard"));
	assert_int_equal(get(w, "m1").message.n_headers, 1);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", seq).done, 1);
	OK(redact(w, "m1", "x", NULL));
	assert_tombstone(w, "m1");
	assert_null(world_row(w, "a", seq)->error); /* it may quote the message */
	assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	assert_state(w, "b", seq, OUTBOX_DELIVERED, 0);
}

static void it_is_audited_once(struct store_world *w)
{
	struct outbox_audit *rows;
	int64_t seqs[4];
	size_t count;
	bool done = true;

	world_target(w, "a");
	publish(w, "m1", "k");
	worker_drain(worker_start(w, "k", "a", 0), seqs, 4);
	OK(redact(w, "m1", "she asked for it", NULL));
	OK(redact(w, "m1", "once more", &done));
	assert_false(done);
	OK(store_audit(w->store, "m1", 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 1);
	assert_string_equal(rows[0].action, "redact");
	assert_string_equal(rows[0].actor, "anna");
	assert_string_equal(rows[0].reason, "she asked for it");
}

/* Errors in the audit trail may quote the message, too. */
static void the_trail_keeps_who_and_why(struct store_world *w)
{
	struct outbox_audit *rows;
	struct worker *a;
	size_t count;
	int64_t seq;

	world_target(w, "a");
	seq = publish(w, "m1", "k");
	a = worker_start(w, "k", "a", 0);
	worker_advance(a, 1);
	settle_fail(a, 0);
	a->settled[0].error = "no such street: St James's Square";
	worker_advance(a, 0);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", seq).done, 1);
	assert_drains(a, 1, seq);
	OK(redact(w, "m1", "asked for", NULL));
	OK(store_audit(w->store, "m1", 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 2);
	assert_string_equal(rows[1].action, "requeue");
	assert_null(rows[1].detail);
}

static struct worker *fail_at(struct store_world *w, const char *target, const char *error)
{
	struct worker *k = worker_start(w, "k", target, 0);

	assert_int_equal(worker_advance(k, 1), 1);
	settle_fail(k, 0);
	k->settled[0].error = error;
	worker_advance(k, 0);
	return k;
}

/* What others did with other messages is none of its business. */
static void the_trail_of_others_stays(struct store_world *w)
{
	struct outbox_audit *rows;
	int64_t first, second;
	struct worker *a;
	size_t count;

	world_target(w, "a");
	first = publish(w, "m1", "k");
	fail_at(w, "a", "one");
	second = publish(w, "m2", "l");
	a = fail_at(w, "a", "two");
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", first).done, 1);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", second).done, 1);
	assert_drains(a, 2, first, second);
	OK(redact(w, "m1", "asked for", NULL));
	OK(store_audit(w->store, "m2", 10, w->arena, &rows, &count, &w->err));
	assert_int_equal(count, 1);
	assert_non_null(rows[0].detail);
	assert_int_equal(get(w, "m2").message.n_headers, 1);
}

/* Why it failed before it came to a dead letter may quote it as well. */
static void a_dead_letter_forgets_why(struct store_world *w)
{
	struct outbox_target_def dead = target_def("dead"), a = target_def("a");
	int64_t seq;

	dead.route.nothing = true;
	world_target_put(w, &dead);
	a.dead_letter = "dead";
	world_target_put(w, &a);
	seq = publish(w, "m1", "ada@example.org");
	fail_at(w, "a", "no such street: St James's Square");
	assert_int_equal(redact(w, "m1", "x", NULL), OUTBOX_ECONFLICT);
	fail_at(w, "dead", "nor here: St James's Square");
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", seq).done, 1);
	assert_int_equal(redact(w, "m1", "x", NULL), OUTBOX_ECONFLICT);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "dead", seq).done, 1);
	OK(redact(w, "m1", "asked for", NULL));
	assert_tombstone(w, "m1");
	assert_null(world_row(w, "dead", seq)->error);
	assert_null(strstr(world_row(w, "dead", seq)->key, "ada"));
	assert_null(strstr(world_picture(w), "ada"));
	assert_null(strstr(world_picture(w), "Square"));
}

/* With many lanes: a new key in another lane would deliver it again, or lose its history. */
static void every_lane_finds_it_where_it_was(struct store_world *w)
{
	char id[16];
	int64_t seqs[16], drained[16];

	world_target(w, "a");
	for (int i = 0; i < 16; i++) {
		snprintf(id, sizeof(id), "m%d", i);
		seqs[i] = publish(w, id, key_in_lane(w, i % 4, i / 4));
	}
	for (int lane = 0; lane < 4; lane += 2) { /* the others have not read theirs */
		struct worker *k = worker_new(w, "k", "a");

		worker_lease(k);
		worker_take(k, lane);
		assert_int_equal(worker_drain(k, drained, 16), 4);
	}
	for (int i = 0; i < 16; i++) {
		snprintf(id, sizeof(id), "m%d", i);
		assert_int_equal(redact(w, id, "x", NULL), i % 2 ? OUTBOX_ECONFLICT : OUTBOX_OK);
	}
	for (int lane = 0; lane < 4; lane++) {
		struct worker *k = worker_new(w, "k", "a");

		worker_lease(k);
		worker_take(k, lane);
		assert_int_equal(worker_drain(k, drained, 16), lane % 2 ? 4 : 0);
	}
	for (int i = 0; i < 16; i++)
		assert_state(w, "a", seqs[i], OUTBOX_DELIVERED, 0);
}

/* "m1 m3": what is found, in order, with so many looked at in one call. */
static const char *find(struct store_world *w, const char *key, const char *like, size_t limit)
{
	struct outbox_key_search search = OUTBOX_KEY_SEARCH_INIT;
	struct outbox_key_found found = { .more = true };
	static char ids[200];
	size_t at = 0;

	search.key = key;
	search.key_like = like;
	search.limit = limit;
	for (ids[0] = '\0'; found.more; search.after_seq = found.last_seq) {
		OK(store_find_key(w->store, &search, w->arena, &found, &w->err));
		assert_true(found.looked <= limit && found.count <= found.looked);
		for (size_t i = 0; i < found.count; i++)
			at += (size_t)snprintf(ids + at, sizeof(ids) - at, "%s%s", at ? " " : "",
					       found.ids[i]);
	}
	return ids;
}

/* However little is looked at in one call, and whatever became of the messages. */
static void messages_are_found_by_their_key(struct store_world *w)
{
	struct outbox_key_search none = OUTBOX_KEY_SEARCH_INIT;
	struct outbox_key_found found;
	struct worker *k;
	int64_t seqs[8];

	world_target(w, "a");
	assert_string_equal(find(w, "ada", NULL, 3), "");
	publish(w, "m1", "ada");
	publish(w, "m2", "a_a");
	publish(w, "m3", NULL);
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(worker_drain(k, seqs, 8), 3);
	publish(w, "m4", "ada");
	publish(w, "m5", "Ada");
	publish(w, "m6", "ada.b");
	for (size_t limit = 1; limit < 8; limit++) {
		assert_string_equal(find(w, "ada", NULL, limit), "m1 m4");
		assert_string_equal(find(w, "a_a", NULL, limit), "m2"); /* no wildcard */
		assert_string_equal(find(w, NULL, "a_a", limit), "m2");
		assert_string_equal(find(w, NULL, "a?a", limit), "m1 m2 m4");
		assert_string_equal(find(w, NULL, "ada*", limit), "m1 m4 m6");
		assert_string_equal(find(w, NULL, "*", limit), "m1 m2 m4 m5 m6");
		assert_string_equal(find(w, "nobody", NULL, limit), "");
	}
	OK(redact(w, "m1", "asked for", NULL));
	assert_string_equal(find(w, "ada", NULL, 3), "m4");
	assert_int_equal(store_find_key(w->store, &none, w->arena, &found, &w->err), OUTBOX_EINVAL);
}

#define CASE(name, lanes)             \
	{                             \
#name, name, lanes, 0 \
	}
const struct store_case redact_cases[] = {
	CASE(what_is_personal_goes, 1),           CASE(bytes_and_no_key, 1),
	CASE(only_when_all_is_finished, 1),       CASE(it_is_audited_once, 1),
	CASE(the_trail_keeps_who_and_why, 1),     CASE(the_trail_of_others_stays, 1),
	CASE(a_dead_letter_forgets_why, 1),       CASE(every_lane_finds_it_where_it_was, 4),
	CASE(messages_are_found_by_their_key, 1), { NULL, NULL, 0, 0 },
};
