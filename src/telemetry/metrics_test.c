/* SPDX-License-Identifier: Apache-2.0 */
#include "base/unit_test.h"
#include "telemetry/metrics_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW (1800000000 * OUTBOX_SECONDS)

static struct outbox_lane_stats lanes[] = {
	{ .lane = 0, .owner = "relay-a:83a0/0", .lease_until = NOW + 1 },
	{ .lane = 1, .owner = "re\"l\\ay\n:b:17a0/1", .lease_until = NOW + 1 },
	{ .lane = 2, .owner = "relay-a:83a0/1", .lease_until = NOW + 1 },
	{ .lane = 3, .owner = "dead:0000/0", .lease_until = NOW, .refused = "of another history" },
};

static struct outbox_target_stats in_store[] = {
	{ .name = "events",
	  .pending = OUTBOX_COUNT_CAP + 1,
	  .failed = OUTBOX_COUNT_CAP,
	  .oldest = NOW - 1500 * OUTBOX_MILLISECONDS,
	  .paused = true,
	  .n_lanes = 4,
	  .lanes = lanes,
	  .delivered_ever = 7000000000 },
};

static struct outbox_stats stats = { .store_now = NOW, .n_targets = 1, .targets = in_store };

static struct target_metrics in_process[] = {
	{ .target = "events",
	  .transport = "nats",
	  .delivered = 42,
	  .breaker = BREAKER_PROBING,
	  .duplicates_takeover = 3,
	  .throttled = true,
	  .lanes = 2,
	  .latency = { .buckets = { 1, 0, 2, [HISTOGRAM_BUCKETS - 1] = 1 },
		       .count = 4,
		       .sum = 21600000123 } },
};

static const struct daemon_source shop = { .name = "shop",
					   .state = SOURCE_RUNNING,
					   .n_targets = 1,
					   .targets = in_process },
				  bank = { .name = "bank",
					   .state = SOURCE_STARTING,
					   .trouble = "no such host" };

static const struct sample_source sources[] = { { .source = &shop, .stats = &stats },
						{ .source = &bank, .trouble = "no such host" } };

static const struct health_finding findings[] = {
	{ .rule = "failed", .level = LEVEL_UNHEALTHY, .source = "shop", .target = "events" },
};

static const struct sample sample = { .at = NOW + 250000,
				      .n_sources = 2,
				      .sources = sources,
				      .n_findings = 1,
				      .findings = findings,
				      .level = LEVEL_UNHEALTHY };

static struct buf written(const struct sample *from)
{
	struct buf out = BUF_INIT(1 << 20);

	metrics_write(from, &out);
	assert_false(out.failed);
	return out;
}

static void has(const struct buf *text, const char *line)
{
	for (const char *at = strstr(text->data, line); at; at = strstr(at + 1, line))
		if ((at == text->data || at[-1] == '\n') && at[strlen(line)] == '\n')
			return;
	fail_msg("no line %s in\n%s", line, text->data);
}

static void has_not(const struct buf *text, const char *part)
{
	if (strstr(text->data, part))
		fail_msg("%s is in\n%s", part, text->data);
}

static void what_was_counted_is_written(void **state)
{
	struct buf text = written(&sample);

	(void)state;
	has(&text, "# TYPE outbox_delivered_total counter");
	has(&text, "outbox_delivered_total{source=\"shop\",target=\"events\"} 42");
	has(&text,
	    "outbox_duplicates_total{source=\"shop\",target=\"events\",reason=\"takeover\"} 3");
	has(&text, "outbox_duplicates_total{source=\"shop\",target=\"events\",reason=\"fenced\"} 0");
	has(&text, "outbox_breaker_state{source=\"shop\",target=\"events\"} 2");
	has(&text, "outbox_lanes_held{source=\"shop\",target=\"events\"} 2");
	has(&text, "outbox_throttled{source=\"shop\",target=\"events\"} 1");
	has(&text, "outbox_health 2");
	has(&text, "outbox_finding{source=\"shop\",target=\"events\",rule=\"failed\","
		   "level=\"unhealthy\"} 1");
	has(&text, "outbox_looked_timestamp_seconds 1800000000.25");
	has(&text, "outbox_build_info{version=\"" OUTBOX_VERSION "\"} 1");
	buf_deinit(&text);
}

static void buckets_add_up_and_bounds_are_seconds(void **state)
{
	struct buf text = written(&sample);

	(void)state;
	has(&text, "# TYPE outbox_delivery_latency_seconds histogram");
	has(&text, "outbox_delivery_latency_seconds_bucket{source=\"shop\",target=\"events\","
		   "le=\"0.001\"} 1");
	has(&text, "outbox_delivery_latency_seconds_bucket{source=\"shop\",target=\"events\","
		   "le=\"0.005\"} 3");
	has(&text, "outbox_delivery_latency_seconds_bucket{source=\"shop\",target=\"events\","
		   "le=\"21600\"} 3");
	has(&text, "outbox_delivery_latency_seconds_bucket{source=\"shop\",target=\"events\","
		   "le=\"+Inf\"} 4");
	has(&text, "outbox_delivery_latency_seconds_sum{source=\"shop\",target=\"events\"} "
		   "21600.000123");
	has(&text, "outbox_delivery_latency_seconds_count{source=\"shop\",target=\"events\"} 4");
	has(&text, "outbox_batch_size_bucket{source=\"shop\",target=\"events\",le=\"100000\"} 0");
	buf_deinit(&text);
}

static void counts_that_stopped_say_so(void **state)
{
	struct buf text = written(&sample);

	(void)state;
	has(&text, "outbox_pending{source=\"shop\",target=\"events\"} 100001");
	has(&text,
	    "outbox_count_capped{source=\"shop\",target=\"events\",gauge=\"outbox_pending\"} 1");
	has(&text,
	    "outbox_count_capped{source=\"shop\",target=\"events\",gauge=\"outbox_failed\"} 0");
	has(&text, "outbox_store_delivered_total{source=\"shop\",target=\"events\"} 7000000000");
	has(&text, "outbox_oldest_age_seconds{source=\"shop\",target=\"events\"} 1.5");
	has(&text, "outbox_paused{source=\"shop\",target=\"events\"} 1");
	buf_deinit(&text);
}

static void owners_are_escaped_and_counted_by_relay(void **state)
{
	struct buf text = written(&sample);

	(void)state;
	has(&text, "outbox_lanes{source=\"shop\",target=\"events\",owner=\"relay-a\"} 2");
	has(&text, "outbox_lanes{source=\"shop\",target=\"events\",owner=\"re\\\"l\\\\ay\\n:b\"} 1");
	has(&text, "outbox_lanes{source=\"shop\",target=\"events\",owner=\"\"} 1");
	has(&text, "outbox_lane_owners{source=\"shop\",target=\"events\"} 2");
	has(&text, "outbox_unserved{source=\"shop\",target=\"events\"} 0");
	has(&text, "outbox_lanes_refused{source=\"shop\",target=\"events\"} 1");
	buf_deinit(&text);
}

static void escapes(void **state)
{
	static const char *const cases[][2] = {
		{ "plain", "plain" },     { "a\"b", "a\\\"b" },
		{ "a\\b", "a\\\\b" },     { "a\nb", "a\\nb" },
		{ "a\rb\033", "a?b?" },   { "gr\xc3\xbcn", "gr\xc3\xbcn" },
		{ "\xff\xc3x", "\?\?x" }, { "a\\\"\n", "a\\\\\\\"\\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = BUF_INIT(100);

		metric_escape(cases[i][0], &out);
		assert_string_equal(buf_str(&out), cases[i][1]);
		buf_deinit(&out);
	}
}

/* A number of ten minutes ago would be taken for one of now. */
static void a_store_that_is_away_has_no_numbers(void **state)
{
	struct buf text = written(&sample);

	(void)state;
	has(&text, "outbox_source_up{source=\"shop\"} 1");
	has(&text, "outbox_source_up{source=\"bank\"} 0");
	has(&text, "outbox_source_running{source=\"bank\"} 0");
	has_not(&text, "outbox_pending{source=\"bank\"");
	has_not(&text, "outbox_messages{source=\"bank\"");
	buf_deinit(&text);
}

static void nothing_configured_is_written_too(void **state)
{
	struct sample nothing = { .at = NOW };
	struct buf text = written(&nothing);

	(void)state;
	has(&text, "outbox_health 0");
	has_not(&text, "outbox_delivered_total");
	buf_deinit(&text);
}

/* Of a metric without labels. */
static int64_t value_of(const struct buf *text, const char *name)
{
	char start[80];
	const char *at;

	snprintf(start, sizeof(start), "\n%s ", name);
	at = strstr(buf_str(text), start);
	assert_non_null(at);
	return atoll(at + strlen(start));
}

static void the_process_knows_its_size(void **state)
{
	struct buf text = written(&sample);

	(void)state;
	assert_in_range(value_of(&text, "process_resident_memory_bytes"), 100000, INT64_C(1) << 40);
	assert_in_range(value_of(&text, "process_open_fds"), 1, 10000);
	assert_true(value_of(&text, "process_cpu_seconds_total") >= 0);
	buf_deinit(&text);
}

/* What the program writes, for promtool to judge. */
static int print(void)
{
	struct buf text = BUF_INIT(1 << 20);

	metrics_write(&sample, &text);
	fwrite(buf_str(&text), 1, text.size, stdout);
	buf_deinit(&text);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_counted_is_written),
		cmocka_unit_test(buckets_add_up_and_bounds_are_seconds),
		cmocka_unit_test(counts_that_stopped_say_so),
		cmocka_unit_test(owners_are_escaped_and_counted_by_relay),
		cmocka_unit_test(escapes),
		cmocka_unit_test(a_store_that_is_away_has_no_numbers),
		cmocka_unit_test(nothing_configured_is_written_too),
		cmocka_unit_test(the_process_knows_its_size),
	};

	if (argc > 1 && strcmp(argv[1], "print") == 0)
		return print();
	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
