/* SPDX-License-Identifier: Apache-2.0 */
/* Retries: exact times, exact counts, what is charged and what is not. */
#include "store/store.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

struct times {
	struct world *world;
	outbox_time start;
	char text[512];
};

static enum memory_fate note_time(void *context, const struct outbox_item *item)
{
	struct times *t = context;
	size_t used = strlen(t->text);
	outbox_time now = t->world->clock.base.mono(&t->world->clock.base);

	(void)item;
	snprintf(t->text + used, sizeof(t->text) - used, "%s%lld", used ? " " : "",
		 (long long)((now - t->start) / OUTBOX_SECONDS));
	return MEMORY_RETRY;
}

/* Attempts of one message under a policy, in seconds after the first. */
static void assert_attempts(const char *policy, const char *expected)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct times times = { .world = w };
	struct memory_hooks hooks = { .context = &times, .on_message = note_time };
	struct outbox_policy exact = *outbox_policy_find(policy);

	exact.jitter_percent = 0;
	target.policy = &exact;
	config.poll_max = 10 * OUTBOX_SECONDS; /* a retry is woken up for, not polled for */
	memory_broker_hooks(w->brokers[0], &hooks);
	times.start = w->clock.base.mono(&w->clock.base);
	world_publish(w, "order.placed", "42", NULL);
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_HOURS);
	assert_string_equal(times.text, expected);
	world_assert(w, "events", 1, OUTBOX_FAILED, 0,
		     exact.max_attempts ? exact.max_attempts : (int)exact.n_schedule + 1);
	assert_non_null(strstr(world_delivery(w, "events", 1).error, "attempt"));
	world_free(w);
}

static void presets_try_at_their_documented_times(void **state)
{
	(void)state;
	assert_attempts("default", "0 1 3 7 15 31 63 127 255 511");
	assert_attempts("hermodr", "0 30 90 210 510");
	assert_attempts("blueprint", "0 5 15 35 75 155 315 635 1275 2175");
	assert_attempts("protean", "0 60 180");
	assert_attempts("opinionated", "0 2 6 14 30");
}

static void a_budget_ends_it_early(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct times times = { .world = w };
	struct memory_hooks hooks = { .context = &times, .on_message = note_time };
	struct outbox_policy policy = *outbox_policy_find("default");

	(void)state;
	policy.jitter_percent = 0;
	policy.budget = 10 * OUTBOX_SECONDS;
	target.policy = &policy;
	memory_broker_hooks(w->brokers[0], &hooks);
	times.start = w->clock.base.mono(&w->clock.base);
	world_publish(w, "order.placed", "42", NULL);
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_HOURS);
	assert_string_equal(times.text, "0 1 3 7");
	world_assert(w, "events", 1, OUTBOX_FAILED, 0, 4);
	world_free(w);
}

static void a_rejection_fails_at_once(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .fate = MEMORY_REJECT, .reason = "422: \"total\" must be >= 0" };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish(w, "order.placed", "42", NULL);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_HOURS);
	world_assert(w, "events", 1, OUTBOX_FAILED, 0, 1);
	assert_non_null(strstr(world_delivery(w, "events", 1).error, "422: \"total\""));
	world_free(w);
}

static void requeue_starts_from_zero(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .fate = MEMORY_REJECT, .times = 1 };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish(w, "order.placed", "42", NULL);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "events", 1, 0), 1);
	world_assert(w, "events", 1, OUTBOX_PENDING, OUTBOX_WAITING, 0);
	world_run(w, OUTBOX_SECONDS);
	world_assert(w, "events", 1, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

static void bad_rows_fail_and_stop_nobody(void **state)
{
	struct world *w = world_new(1);
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t seq;

	(void)state;
	/* written past the library's checks, as any SQL client can */
	m.type = "order.placed";
	m.key = "42";
	m.data = "{not json";
	m.size = strlen(m.data);
	assert_int_equal(store_append(w->store, &m, 1, &seq, NULL, NULL), OUTBOX_OK);
	world_publish(w, "order.placed", "42", NULL);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_SECONDS);
	world_assert(w, "events", 1, OUTBOX_FAILED, 0, 1);
	assert_non_null(strstr(world_delivery(w, "events", 1).error, "JSON"));
	world_assert(w, "events", 2, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

static void event_time_and_payload_survive_retries(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .fate = MEMORY_RETRY, .times = 3 };
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_delivery d;

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	m.type = "blob";
	m.key = "k";
	m.content_type = "application/octet-stream";
	m.data = "\0\1\2\377";
	m.size = 4;
	m.event_time = 1234567 * OUTBOX_SECONDS;
	world_publish_message(w, &m);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_MINUTES);
	d = world_delivery(w, "events", 1);
	assert_int_equal(d.event_time, 1234567 * OUTBOX_SECONDS);
	assert_int_equal(memory_broker_at(w->brokers[0], 0)->size, 4);
	assert_memory_equal(memory_broker_at(w->brokers[0], 0)->body, "\0\1\2\377", 4);
	assert_int_equal(memory_broker_at(w->brokers[0], 0)->attempts, 3);
	world_free(w);
}

/* The last line of the log that speaks of refusals. */
static const char *last_refusal(const struct world *w)
{
	const char *last = NULL;

	for (const char *at = w->log; (at = strstr(at, " refusal")); at++)
		last = at;
	assert_non_null(last);
	return last;
}

static void a_line_tells_what_is_so_when_it_is_written(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct times times = { .world = w };
	struct memory_hooks hooks = { .context = &times, .on_message = note_time }, none = { 0 };
	struct outbox_policy quick = *outbox_policy_find("default");
	struct outbox_message late = OUTBOX_MESSAGE_INIT;

	(void)state;
	quick.jitter_percent = 0;
	quick.max_attempts = 3;
	target.policy = &quick;
	memory_broker_hooks(w->brokers[0], &hooks);
	world_relay(w, 0, &config);
	world_publish(w, "order.placed", "42", NULL);
	world_settle(w);
	assert_non_null(strstr(last_refusal(w), "refused for now; details: outbox list --target events "
						"--why retry"));
	/* it fails within the minute: where it was, nobody finds it any more */
	world_run(w, 70 * OUTBOX_SECONDS);
	world_publish(w, "order.placed", "43", NULL);
	world_run(w, 500 * OUTBOX_MILLISECONDS);
	assert_non_null(strstr(last_refusal(w),
			       "attempts used up; details: outbox list --target events "
			       "--state failed"));
	/* the next one waits, and gets through before anything is told */
	memory_broker_hooks(w->brokers[0], &none);
	world_run(w, 10 * OUTBOX_SECONDS);
	memory_broker_hooks(w->brokers[0], &hooks);
	world_publish(w, "order.placed", "44", NULL);
	world_run(w, 500 * OUTBOX_MILLISECONDS);
	memory_broker_hooks(w->brokers[0], &none);
	world_run(w, 10 * OUTBOX_SECONDS);
	world_drain(w, 0, OUTBOX_SECONDS);
	assert_non_null(strstr(last_refusal(w), "which has been delivered since: refused for now"));
	assert_null(strstr(last_refusal(w), "--why retry"));
	/* and one that nobody refused */
	late.type = "order.late";
	late.data = "{}";
	late.size = 2;
	late.expires_at = w->clock.base.wall(&w->clock.base) - OUTBOX_SECONDS;
	world_publish_message(w, &late);
	world_relay(w, 1, &config);
	world_run(w, OUTBOX_SECONDS);
	assert_non_null(strstr(last_refusal(w), "it has expired; details: outbox list --target events "
						"--state failed"));
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets_try_at_their_documented_times),
		cmocka_unit_test(a_budget_ends_it_early),
		cmocka_unit_test(a_rejection_fails_at_once),
		cmocka_unit_test(requeue_starts_from_zero),
		cmocka_unit_test(bad_rows_fail_and_stop_nobody),
		cmocka_unit_test(event_time_and_payload_survive_retries),
		cmocka_unit_test(a_line_tells_what_is_so_when_it_is_written),
	};

	return WORLD_MAIN(argc, argv, "retry", tests);
}
