/* SPDX-License-Identifier: Apache-2.0 */
/* The broker in memory does what its script says: other tests rely on it. */

#include "memory_transport/memory.h"

#include <outbox/arena.h>

#include "frozen_clock.h"
#include "transport/transport.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ITEMS 6

struct world {
	struct frozen_clock clock;
	struct memory_broker *broker;
	struct outbox_transport *transport;
	struct outbox_arena *arena;
	struct outbox_message messages[ITEMS];
	struct outbox_item items[ITEMS], *pointers[ITEMS];
	struct outbox_batch batch;
};

static const char *const ids[ITEMS] = { "m1", "m2", "m3", "m4", "m5", "m6" };

static struct outbox_transport *open_memory(struct world *w, int envelope)
{
	struct outbox_transport_config config = {
		.struct_size = sizeof(config),
		.url = "memory:",
		.envelope = envelope,
		.clock = &w->clock.base,
		.context = w->broker,
	};
	struct outbox_transport *transport = NULL;

	assert_int_equal(memory_transport_ops.open(&config, &transport, NULL), OUTBOX_OK);
	return transport;
}

static int connect(struct world *w)
{
	return w->transport->ops->connect(w->transport, OUTBOX_NEVER, NULL);
}

static int setup(void **state)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	frozen_clock_init(&w->clock, 1763197200 * OUTBOX_SECONDS);
	assert_int_equal(memory_broker_new(&w->broker, NULL), OUTBOX_OK);
	w->arena = outbox_arena_new(1 << 20);
	assert_non_null(w->arena);
	for (int i = 0; i < ITEMS; i++) {
		w->messages[i] = (struct outbox_message){
			.type = i % 2 ? "order.paid" : "order.placed",
			.id = ids[i],
			.key = i < 3 ? "a" : "b",
			.source = "/test",
			.data = "{}",
			.size = 2,
		};
		w->items[i] = (struct outbox_item){ .message = &w->messages[i], .seq = i + 1 };
		w->pointers[i] = &w->items[i];
	}
	w->batch = (struct outbox_batch){ w->pointers, ITEMS, w->arena };
	w->transport = open_memory(w, 0);
	assert_int_equal(connect(w), OUTBOX_OK);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	transport_close(w->transport);
	assert_null(memory_broker_free(w->broker));
	outbox_arena_free(w->arena);
	return 0;
}

static int publish(struct world *w)
{
	for (int i = 0; i < ITEMS; i++) {
		w->items[i].verdict = OUTBOX_VERDICT_UNSET;
		w->items[i].reason = NULL;
	}
	return w->transport->ops->publish(w->transport, &w->batch,
					  w->clock.base.mono(&w->clock.base) + OUTBOX_SECONDS, NULL);
}

static void rule(struct world *w, struct memory_rule rule)
{
	assert_int_equal(memory_broker_rule(w->broker, &rule, NULL), OUTBOX_OK);
}

/* Verdicts as letters: A R(ejected) T(ry again) U(nknown) and - for none. */
static void assert_verdicts(struct world *w, const char *letters)
{
	char have[ITEMS + 1] = { 0 };

	for (int i = 0; i < ITEMS; i++)
		have[i] = "-ARTU"[w->items[i].verdict];
	assert_string_equal(have, letters);
}

/* What is kept, as the last digits of the ids. */
static void assert_kept(struct world *w, const char *digits)
{
	const struct memory_record *record;
	char have[64] = { 0 };
	size_t n = 0;

	for (; (record = memory_broker_at(w->broker, n)); n++)
		have[n] = record->id[1];
	assert_int_equal(n, memory_broker_count(w->broker));
	assert_string_equal(have, digits);
}

static void records_say_where_they_came_from(void **state)
{
	struct world *w = *state;
	const struct memory_record *record;
	struct memory_counts counts;

	assert_int_equal(publish(w), OUTBOX_OK);
	w->transport->ops->disconnect(w->transport);
	assert_int_equal(connect(w), OUTBOX_OK);
	w->items[0].attempts = 2;
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_kept(w, "123456123456");
	record = memory_broker_at(w->broker, 6);
	assert_string_equal(record->type, "order.placed");
	assert_string_equal(record->key, "a");
	assert_int_equal(record->seq, 1);
	assert_int_equal(record->attempts, 2);
	assert_int_equal(record->connection, 2);
	assert_int_equal(record->call, 2);
	assert_true(record->confirmed);
	assert_int_equal(memory_broker_count_id(w->broker, "m3"), 2);
	memory_broker_counts(w->broker, &counts);
	assert_int_equal(counts.connects, 2);
	assert_int_equal(counts.publishes, 2);
	assert_int_equal(counts.offered, 12);
	assert_int_equal(counts.acked, 12);
	memory_broker_clear(w->broker);
	assert_kept(w, "");
}

static void rules_give_verdicts(void **state)
{
	struct world *w = *state;

	rule(w, (struct memory_rule){ .id = "m1", .fate = MEMORY_REJECT, .reason = "no such queue" });
	rule(w, (struct memory_rule){ .seq = 2, .fate = MEMORY_RETRY, .times = 1 });
	rule(w, (struct memory_rule){ .key = "a", .fate = MEMORY_UNKNOWN_KEPT });
	rule(w, (struct memory_rule){ .type = "order.p?id", .fate = MEMORY_UNKNOWN_LOST });
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_verdicts(w, "RTUUAU");
	assert_string_equal(w->items[0].reason, "no such queue");
	assert_kept(w, "35");
	assert_false(memory_broker_at(w->broker, 0)->confirmed);
	/* The retry was for once; the key's rule is next. */
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_verdicts(w, "RUUUAU");
	memory_broker_forget_rules(w->broker);
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_verdicts(w, "AAAAAA");
}

static void rules_drop_the_connection(void **state)
{
	struct world *w = *state;

	rule(w, (struct memory_rule){ .id = "m3", .fate = MEMORY_DROP, .times = 1 });
	rule(w, (struct memory_rule){ .id = "m5", .fate = MEMORY_DROP_KEPT, .status = OUTBOX_EFULL });
	assert_int_equal(publish(w), OUTBOX_ECONN);
	assert_verdicts(w, "AA----");
	assert_kept(w, "12");
	assert_int_equal(publish(w), OUTBOX_ECONN);
	assert_verdicts(w, "------");
	assert_int_equal(connect(w), OUTBOX_OK);
	assert_int_equal(publish(w), OUTBOX_EFULL);
	assert_verdicts(w, "AAAA--");
	assert_kept(w, "1212345");
}

static void lost_connection_with_and_without_answers(void **state)
{
	struct world *w = *state;

	memory_broker_lose(w->broker, 4, false);
	assert_int_equal(publish(w), OUTBOX_ECONN);
	assert_verdicts(w, "AAAA--");
	assert_kept(w, "1234");
	memory_broker_clear(w->broker);
	assert_int_equal(connect(w), OUTBOX_OK);
	memory_broker_lose(w->broker, ITEMS + 2, true);
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_verdicts(w, "AAAAAA");
	assert_int_equal(publish(w), OUTBOX_ECONN);
	assert_verdicts(w, "------");
	assert_kept(w, "12345612");
	assert_false(memory_broker_at(w->broker, 7)->confirmed);
	/* Only once. */
	assert_int_equal(connect(w), OUTBOX_OK);
	assert_int_equal(publish(w), OUTBOX_OK);
}

static void outages(void **state)
{
	struct world *w = *state;
	struct memory_counts counts;

	memory_broker_down(w->broker, OUTBOX_EAUTH);
	assert_int_equal(publish(w), OUTBOX_EAUTH);
	assert_verdicts(w, "------");
	assert_int_equal(connect(w), OUTBOX_EAUTH);
	memory_broker_up(w->broker);
	assert_int_equal(publish(w), OUTBOX_ECONN);
	memory_broker_refuse(w->broker, 2, OUTBOX_ETIMEDOUT);
	assert_int_equal(connect(w), OUTBOX_ETIMEDOUT);
	assert_int_equal(connect(w), OUTBOX_ETIMEDOUT);
	assert_int_equal(connect(w), OUTBOX_OK);
	assert_int_equal(publish(w), OUTBOX_OK);
	memory_broker_counts(w->broker, &counts);
	assert_int_equal(counts.refused, 3);
}

static void step_the_clock(void *context, const struct outbox_batch *batch)
{
	struct world *w = context;

	(void)batch;
	frozen_clock_step(&w->clock, 2 * OUTBOX_SECONDS);
}

static enum memory_fate go_down_at_four(void *context, const struct outbox_item *item)
{
	struct world *w = context;

	if (item->seq == 4)
		memory_broker_down(w->broker, OUTBOX_ECONN);
	return item->seq == 2 ? MEMORY_REJECT : MEMORY_DEFAULT;
}

static void hooks_script_the_rest(void **state)
{
	struct world *w = *state;
	struct memory_hooks hooks = { .context = w, .on_message = go_down_at_four };

	memory_broker_hooks(w->broker, &hooks);
	assert_int_equal(publish(w), OUTBOX_ECONN);
	assert_verdicts(w, "ARA---");
	assert_kept(w, "13");
	memory_broker_up(w->broker);
	assert_int_equal(connect(w), OUTBOX_OK);
	hooks = (struct memory_hooks){ .context = w, .on_publish = step_the_clock };
	memory_broker_hooks(w->broker, &hooks);
	assert_int_equal(publish(w), OUTBOX_ETIMEDOUT);
	assert_verdicts(w, "------");
	memory_broker_hooks(w->broker, NULL);
	assert_int_equal(connect(w), OUTBOX_OK);
	assert_int_equal(publish(w), OUTBOX_OK);
}

static void envelope_is_applied(void **state)
{
	struct world *w = *state;
	const struct memory_record *record;

	assert_int_equal(publish(w), OUTBOX_OK);
	record = memory_broker_at(w->broker, 0);
	assert_int_equal(record->size, 2);
	assert_memory_equal(record->body, "{}", 2);
	transport_close(w->transport);
	memory_broker_clear(w->broker);
	w->transport = open_memory(w, OUTBOX_ENVELOPE_CE_STRUCTURED);
	assert_int_equal(connect(w), OUTBOX_OK);
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_non_null(strstr(memory_broker_at(w->broker, 0)->body, "\"specversion\""));
}

static void without_a_broker_it_does_not_open(void **state)
{
	struct world *w = *state;
	struct outbox_transport_config config = { .url = "memory:", .clock = &w->clock.base };
	struct outbox_transport *transport = NULL;

	assert_int_equal(memory_transport_ops.open(&config, &transport, NULL), OUTBOX_ECONFIG);
	assert_null(transport);
}

static void *publish_often(void *argument)
{
	struct world *w = argument;

	for (int i = 0; i < 200; i++)
		if (publish(w) != OUTBOX_OK)
			return w;
	return NULL;
}

static void threads_share_a_broker(void **state)
{
	struct world *w = *state, other;
	struct memory_counts counts;
	pthread_t thread;
	void *failed = w;

	other = *w;
	for (int i = 0; i < ITEMS; i++)
		other.pointers[i] = &other.items[i];
	other.batch.items = other.pointers;
	other.transport = open_memory(w, 0);
	assert_int_equal(connect(&other), OUTBOX_OK);
	assert_int_equal(pthread_create(&thread, NULL, publish_often, &other), 0);
	assert_null(publish_often(w));
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	transport_close(other.transport);
	memory_broker_counts(w->broker, &counts);
	assert_int_equal(counts.acked, 2 * 200 * ITEMS);
	assert_int_equal(memory_broker_count(w->broker), 2 * 200 * ITEMS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_say_where_they_came_from),
		TEST(rules_give_verdicts),
		TEST(rules_drop_the_connection),
		TEST(lost_connection_with_and_without_answers),
		TEST(outages),
		TEST(hooks_script_the_rest),
		TEST(envelope_is_applied),
		TEST(without_a_broker_it_does_not_open),
		TEST(threads_share_a_broker),
	};

	return cmocka_run_group_tests_name("memory_transport", tests, NULL, NULL);
}
