/* SPDX-License-Identifier: Apache-2.0 */
/* When an alert begins and ends. */
#include "operate/health_test.h"

static void test_all_is_well(void **state)
{
	struct world *w = *state;

	go_on(w, OUTBOX_HOURS);
	go_on(w, OUTBOX_HOURS);
	assert_int_equal(w->count, 0);
	assert_int_equal(health_worst(w->findings, w->count, NULL), LEVEL_HEALTHY);
}

static void test_old_news_fires_at_once(void **state)
{
	struct world *w = *state;

	sample_world(w);
	w->target.oldest = w->stats.store_now - w->limits.overdue - w->limits.settle;
	w->target.outage = "no route to host";
	w->target.outage_since = w->stats.store_now - w->limits.settle;
	sample_world(w);
	assert_non_null(found(w, RULE_OVERDUE));
	assert_non_null(found(w, RULE_OUTAGE));
	assert_int_equal(found(w, RULE_OUTAGE)->since, w->wall - w->limits.settle);
}

static void test_one_good_look_begins_anew(void **state)
{
	struct world *w = *state;

	w->target.pending = 1001;
	sample_world(w);
	go_on(w, w->limits.pending_for - 1);
	w->target.pending = 1000;
	go_on(w, 0);
	w->target.pending = 1001;
	fires_after(w, RULE_PENDING, w->limits.pending_for);
	/* and one good look does not end it */
	w->target.pending = 0;
	go_on(w, w->limits.settle / 2);
	w->target.pending = 1001;
	go_on(w, w->limits.settle / 2);
	w->target.pending = 0;
	ends_after_settle(w, RULE_PENDING);
}

static void test_source_down(void **state)
{
	struct world *w = *state;

	w->target.failed = 1;
	sample_world(w);
	w->source.stats = NULL;
	w->source.trouble = "connection refused";
	w->source.n_metrics = 0;
	fires_after(w, RULE_SOURCE_DOWN, w->limits.settle);
	/* nothing new is known of its targets: what fired goes on, however long */
	go_on(w, OUTBOX_HOURS);
	assert_non_null(found(w, RULE_FAILED));
	assert_null(found(w, RULE_RELAY_DOWN));
	w->source.stats = &w->stats;
	w->source.trouble = "schema 9 is newer than this program";
	fires_after(w, RULE_RELAY_DOWN, w->limits.settle);
	w->source.trouble = NULL;
	ends_after_settle(w, RULE_RELAY_DOWN);
	assert_null(found(w, RULE_SOURCE_DOWN));
}

static void test_what_is_gone_is_forgotten(void **state)
{
	struct world *w = *state;

	w->target.failed = 1;
	sample_world(w);
	w->stats.n_targets = 0;
	sample_world(w);
	assert_int_equal(w->count, 0);
	w->stats.n_targets = 1;
	sample_world(w);
	assert_int_equal(w->count, 1);
	w->gone = true;
	sample_world(w);
	assert_int_equal(w->count, 0);
}

/* Two sources with targets of the same names: each is judged by itself. */
static void test_neighbours(void **state)
{
	struct world *w = *state;
	struct outbox_target_stats targets[2][2];
	struct outbox_stats stats[2];
	struct health_source sources[2];
	struct health_input input = { .limits = &w->limits, .sources = sources, .n_sources = 2 };

	for (size_t s = 0; s < 2; s++) {
		targets[s][0] = targets[s][1] = w->target;
		targets[s][1].name = "partner";
		stats[s] = (struct outbox_stats){ .n_targets = 2, .targets = targets[s] };
		sources[s] =
			(struct health_source){ .name = s ? "bank" : "shop", .stats = &stats[s] };
	}
	w->lanes[0].lease_until = w->lanes[1].lease_until = 1;
	targets[0][1].failed = 1;
	targets[0][0].failed = 3;
	targets[1][0].failed = 2;
	for (int i = 0; i < 3; i++) {
		assert_ok(health_look(w->memory, &input, w->arena, &w->findings, &w->count, err));
		assert_int_equal(w->count, 3);
		assert_string_equal(w->findings[0].source, "shop");
		assert_string_equal(w->findings[0].target, "events");
		assert_string_equal(w->findings[0].text, "3 failed deliveries, the limit is 0");
		assert_string_equal(w->findings[1].target, "partner");
		assert_string_equal(w->findings[1].text, "1 failed delivery, the limit is 0");
		assert_string_equal(w->findings[2].source, "bank");
		assert_string_equal(w->findings[2].target, "events");
		input.mono += OUTBOX_SECONDS;
	}
	/* one ends, the other goes on */
	targets[0][0].failed = targets[0][1].failed = 0;
	assert_ok(health_look(w->memory, &input, w->arena, &w->findings, &w->count, err));
	input.mono += w->limits.settle;
	assert_ok(health_look(w->memory, &input, w->arena, &w->findings, &w->count, err));
	assert_int_equal(w->count, 1);
	assert_string_equal(w->findings[0].source, "bank");
	/* and the failures of one that is away are still known */
	sources[1].stats = NULL;
	sources[1].trouble = "away";
	input.mono += OUTBOX_HOURS;
	assert_ok(health_look(w->memory, &input, w->arena, &w->findings, &w->count, err));
	assert_int_equal(health_worst(w->findings, w->count, "bank"), LEVEL_UNHEALTHY);
	assert_int_equal(health_worst(w->findings, w->count, "shop"), LEVEL_HEALTHY);
}

static void test_off(void **state)
{
	struct world *w = *state;
	const char *off[] = { "fail*" };

	w->target.failed = 1;
	w->target.paused = true;
	sample_world(w);
	assert_int_equal(w->count, 2);
	w->limits.off = (struct field_texts){ off, 1 };
	sample_world(w);
	assert_int_equal(w->count, 1);
}

static void test_once(void **state)
{
	struct world *w = *state;
	const struct outbox_audit acts[] = {
		{ .at = w->wall + OUTBOX_HOURS - 1, .action = "resume", .target = "events" },
		{ .at = w->wall + OUTBOX_HOURS - 2, .action = "pause", .target = "other" },
		{ .at = w->wall + OUTBOX_HOURS - 3, .action = "pause", .target = "events" },
		{ .at = w->wall + OUTBOX_HOURS - 4, .action = "pause", .target = "events" },
	};

	w->source.acts = acts;
	w->source.n_acts = 4;
	w->once = true;
	w->target.failed = 1;
	w->target.paused = true;
	w->target.pending = 1001;
	w->target.outage = "away";
	w->target.outage_since = w->wall + OUTBOX_HOURS - 1;
	sample_world(w);
	assert_int_equal(w->count, 4);
	/* since when: only what the store knows */
	assert_int_equal(w->findings[0].since, 0);
	assert_int_equal(w->findings[1].since, w->wall - 1);
	assert_int_equal(w->findings[3].since, w->wall - 3);
	/* the worst first, information last */
	assert_string_equal(w->findings[0].rule, "failed");
	assert_string_equal(w->findings[1].rule, "outage");
	assert_string_equal(w->findings[2].rule, "pending");
	assert_string_equal(w->findings[3].rule, "paused");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_is_well),
		TEST(test_old_news_fires_at_once),
		TEST(test_one_good_look_begins_anew),
		TEST(test_source_down),
		TEST(test_what_is_gone_is_forgotten),
		TEST(test_neighbours),
		TEST(test_off),
		TEST(test_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
