/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/handler/handler.h"

#include <outbox/arena.h>

#include "frozen_clock.h"
#include "transport/transport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct world {
	struct frozen_clock clock;
	struct handler_table *table;
	struct outbox_arena *arena;
	struct outbox_message messages[8];
	struct outbox_item items[8], *pointers[8];
	struct outbox_batch batch;
	int calls;
};

static int accept_it(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	(void)item;
	(void)err;
	++*(int *)context;
	return 0;
}

static int refuse_with_text(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	(void)context;
	(void)item;
	/* A permanent status is a failed try all the same: the policy decides, not the handler. */
	return outbox_fail_native(err, OUTBOX_EINVAL, 422, "\"total\" must be >= 0");
}

static int refuse_silently(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	(void)context;
	(void)item;
	(void)err;
	return -7;
}

static int take_a_second(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	(void)item;
	(void)err;
	frozen_clock_step(context, OUTBOX_SECONDS);
	return 0;
}

static int setup(void **state)
{
	static struct world world;

	memset(&world, 0, sizeof(world));
	frozen_clock_init(&world.clock, 1763197200 * OUTBOX_SECONDS);
	assert_int_equal(handler_table_new(&world.table, NULL), OUTBOX_OK);
	world.arena = outbox_arena_new(1 << 20);
	assert_non_null(world.arena);
	world.batch = (struct outbox_batch){ .items = world.pointers, .memory = world.arena };
	*state = &world;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	assert_null(handler_table_free(w->table));
	outbox_arena_free(w->arena);
	return 0;
}

static void handle(struct world *w, const char *type, outbox_handler handler, void *context)
{
	assert_int_equal(handler_table_add(w->table, type, handler, context, NULL), OUTBOX_OK);
}

static void send(struct world *w, const char *type)
{
	size_t i = w->batch.count++;

	w->messages[i] = (struct outbox_message){ .type = type, .id = type };
	w->items[i] = (struct outbox_item){ .message = &w->messages[i], .seq = (int64_t)i + 1 };
	w->pointers[i] = &w->items[i];
}

static int open_handler(struct world *w, int envelope, struct outbox_transport **ret_transport,
			struct outbox_error *err)
{
	struct outbox_transport_config config = {
		.struct_size = sizeof(config),
		.url = "handler:",
		.envelope = envelope,
		.clock = &w->clock.base,
		.context = w->table,
	};

	return handler_transport_ops.open(&config, ret_transport, err);
}

static int publish(struct world *w)
{
	struct outbox_transport *transport = NULL;
	int r;

	assert_int_equal(open_handler(w, 0, &transport, NULL), OUTBOX_OK);
	assert_int_equal(transport->ops->connect(transport, OUTBOX_NEVER, NULL), OUTBOX_OK);
	r = transport->ops->publish(transport, &w->batch,
				    w->clock.base.mono(&w->clock.base) + 2 * OUTBOX_SECONDS, NULL);
	transport_close(transport);
	return r;
}

static void exact_type_goes_before_the_star(void **state)
{
	struct world *w = *state;
	int exact = 0, rest = 0;

	handle(w, "order.placed", accept_it, &exact);
	handle(w, "*", accept_it, &rest);
	handle(w, "order.paid", refuse_silently, NULL);
	send(w, "order.placed");
	send(w, "order.place");
	send(w, "order.placed2");
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_int_equal(exact, 1);
	assert_int_equal(rest, 2);
}

static void unknown_type_is_rejected(void **state)
{
	struct world *w = *state;

	handle(w, "order.placed", accept_it, &w->calls);
	send(w, "order.lost\n\"");
	send(w, "order.placed");
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_int_equal(w->items[0].verdict, OUTBOX_REJECTED);
	assert_string_equal(w->items[0].reason, "unknown event type \"order.lost\\n\\\"\"");
	assert_int_equal(w->items[1].verdict, OUTBOX_ACKED);
	assert_null(w->items[1].reason);
	assert_int_equal(w->calls, 1);
}

static void every_failure_is_a_retry(void **state)
{
	struct world *w = *state;

	handle(w, "a", refuse_with_text, NULL);
	handle(w, "b", refuse_silently, NULL);
	handle(w, "c", accept_it, &w->calls);
	send(w, "a");
	send(w, "b");
	send(w, "c");
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_int_equal(w->items[0].verdict, OUTBOX_RETRY);
	assert_int_equal(w->items[0].native, 422);
	assert_string_equal(w->items[0].reason, "\"total\" must be >= 0");
	assert_int_equal(w->items[1].verdict, OUTBOX_RETRY);
	assert_string_equal(w->items[1].reason, "handler returned -7");
	assert_int_equal(w->items[2].verdict, OUTBOX_ACKED);
}

static int refuse_at_length(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	(void)item;
	return outbox_fail(err, OUTBOX_EINVAL, "%s", (const char *)context);
}

/* As long as a try's error is kept. */
static void a_long_reason_is_kept(void **state)
{
	struct world *w = *state;
	char text[3001] = "";

	memset(text, 'x', sizeof(text) - 1);
	handle(w, "a", refuse_at_length, text);
	send(w, "a");
	assert_int_equal(publish(w), OUTBOX_OK);
	assert_int_equal(strlen(w->items[0].reason), 2000);
}

static void nothing_starts_behind_the_deadline(void **state)
{
	struct world *w = *state;

	handle(w, "slow", take_a_second, &w->clock);
	for (int i = 0; i < 4; i++)
		send(w, "slow");
	assert_int_equal(publish(w), OUTBOX_ETIMEDOUT);
	assert_int_equal(w->items[0].verdict, OUTBOX_ACKED);
	assert_int_equal(w->items[1].verdict, OUTBOX_ACKED);
	assert_int_equal(w->items[2].verdict, OUTBOX_VERDICT_UNSET);
	assert_int_equal(w->items[3].verdict, OUTBOX_VERDICT_UNSET);
}

static void empty_tables_and_envelopes_are_refused(void **state)
{
	struct world *w = *state;
	struct outbox_transport *transport = NULL;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	assert_int_equal(open_handler(w, 0, &transport, &err), OUTBOX_ECONFIG);
	assert_non_null(strstr(err.message, "outbox_registry_handle"));
	handle(w, "*", accept_it, &w->calls);
	assert_int_equal(open_handler(w, OUTBOX_ENVELOPE_CE_BINARY, &transport, NULL),
			 OUTBOX_ECONFIG);
	assert_null(transport);
}

static void mistakes_in_registering_are_told(void **state)
{
	struct world *w = *state;
	char too_long[OUTBOX_TYPE_MAX + 2];

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	assert_int_equal(handler_table_add(w->table, NULL, accept_it, NULL, NULL), OUTBOX_EINVAL);
	assert_int_equal(handler_table_add(w->table, "", accept_it, NULL, NULL), OUTBOX_EINVAL);
	assert_int_equal(handler_table_add(w->table, too_long, accept_it, NULL, NULL), OUTBOX_EINVAL);
	assert_int_equal(handler_table_add(w->table, "order.*", accept_it, NULL, NULL),
			 OUTBOX_EINVAL);
	assert_int_equal(handler_table_add(w->table, "a", NULL, NULL, NULL), OUTBOX_EINVAL);
	assert_int_equal(handler_table_count(w->table), 0);
	handle(w, "a", accept_it, NULL);
	assert_int_equal(handler_table_add(w->table, "a", accept_it, NULL, NULL), OUTBOX_ECONFLICT);
	assert_int_equal(handler_table_count(w->table), 1);
}

static void many_types_are_found(void **state)
{
	struct world *w = *state;
	char type[32];

	for (int i = 0; i < 300; i++) {
		snprintf(type, sizeof(type), "type.%d", i * 7919 % 300);
		handle(w, type, accept_it, NULL);
	}
	for (int i = 0; i < 300; i++) {
		snprintf(type, sizeof(type), "type.%d", i);
		assert_string_equal(handler_table_find(w->table, type)->type, type);
	}
	assert_null(handler_table_find(w->table, "type.300"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(exact_type_goes_before_the_star),
		TEST(unknown_type_is_rejected),
		TEST(every_failure_is_a_retry),
		TEST(a_long_reason_is_kept),
		TEST(nothing_starts_behind_the_deadline),
		TEST(empty_tables_and_envelopes_are_refused),
		TEST(mistakes_in_registering_are_told),
		TEST(many_types_are_found),
	};

	return cmocka_run_group_tests_name("handler", tests, NULL, NULL);
}
