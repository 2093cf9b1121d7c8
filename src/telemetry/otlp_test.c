/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "base/unit_test.h"
#include "telemetry/otlp_json.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define WRITERS 4
#define EACH 20000

static struct otlp_ring ring;

static void parents(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{ PARENT, true },
		{ "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true },
		{ "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", true },
		{ "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", false },
		{ "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false },
		{ "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false },
		{ "00-00000000000000000000000000000000-b7ad6b7169203331-01", false },
		{ "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false },
		{ "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false },
		{ "00-0af7651916cd43dd8448eb211c80319c-b7ad6b71692033", false },
		{ "00", false },
		{ "", false },
	};
	struct traceparent link;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(traceparent_parse(cases[i].text, &link), cases[i].good);
	assert_true(traceparent_parse(PARENT, &link));
	assert_int_equal(link.trace[0], 0x0a);
	assert_int_equal(link.trace[15], 0x9c);
	assert_int_equal(link.span[7], 0x31);
	assert_int_equal(link.flags, 1);
}

static void fresh_ring(void)
{
	memset(&ring, 0, sizeof(ring));
	otlp_ring_init(&ring);
}

static void a_full_ring_takes_no_more(void **state)
{
	struct batch_report report = { .target = "events" };
	struct otlp_batch *batch = malloc(sizeof(*batch));

	(void)state;
	assert_non_null(batch);
	fresh_ring();
	assert_false(otlp_ring_take(&ring, batch));
	for (int round = 0; round < 3; round++) {
		for (report.lane = 0; report.lane < OTLP_RING_SIZE; report.lane++)
			assert_true(otlp_ring_put(&ring, "shop", &report));
		assert_int_equal(otlp_ring_count(&ring), OTLP_RING_SIZE);
		assert_false(otlp_ring_put(&ring, "shop", &report));
		for (int i = 0; i < OTLP_RING_SIZE; i++) {
			assert_true(otlp_ring_take(&ring, batch));
			assert_int_equal(batch->report.lane, i);
		}
		assert_false(otlp_ring_take(&ring, batch));
	}
	free(batch);
}

/* Each puts in its own numbers, ascending. */
static void *write_all(void *context)
{
	size_t put = 0;
	struct batch_report report = { .target = "events", .lane = *(int *)context };

	for (report.messages = 0; report.messages < EACH; report.messages++) {
		report.delivered = report.messages; /* must come out as it went in */
		put += otlp_ring_put(&ring, "shop", &report);
	}
	return (void *)put;
}

static void many_write_and_nothing_is_torn(void **state)
{
	struct otlp_batch *batch = malloc(sizeof(*batch));
	pthread_t threads[WRITERS];
	int numbers[WRITERS];
	size_t put = 0, taken = 0, next[WRITERS] = { 0 };
	int running = WRITERS;
	void *mine;

	(void)state;
	assert_non_null(batch);
	fresh_ring();
	for (int i = 0; i < WRITERS; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, write_all, &numbers[i]), 0);
	}
	while (running || otlp_ring_count(&ring)) {
		if (!otlp_ring_take(&ring, batch)) {
			if (running && !pthread_tryjoin_np(threads[running - 1], &mine)) {
				put += (size_t)mine;
				running--;
			}
			continue;
		}
		taken++;
		assert_in_range(batch->report.lane, 0, WRITERS - 1);
		assert_int_equal(batch->report.messages, batch->report.delivered);
		assert_true(batch->report.messages >= next[batch->report.lane]);
		next[batch->report.lane] = batch->report.messages + 1;
	}
	assert_int_equal(taken, put);
	assert_true(put >= OTLP_RING_SIZE);
	free(batch);
}

static const char *text_at(const json_t *json, const char *key)
{
	const char *text = json_string_value(json_object_get(json, key));

	assert_non_null(text);
	return text;
}

static void a_span_says_what_happened(void **state)
{
	const char *traceparents[OTLP_LINKS_MAX + 5];
	struct batch_report report = { .target = "events",
				       .lane = 2,
				       .messages = 80,
				       .delivered = 69,
				       .began = 1800000000 * OUTBOX_SECONDS,
				       .publish = 1500,
				       .settle = 500,
				       .outage = "gr\xff"
						 "een",
				       .traceparents = traceparents,
				       .n_traceparents = OTLP_LINKS_MAX + 5 };
	const struct otlp_sender sender = { .instance = "relay-a" };
	struct otlp_batch *batch = malloc(sizeof(*batch));
	struct random_state random;
	json_t *body, *span, *link;

	(void)state;
	assert_non_null(batch);
	for (size_t i = 0; i < report.n_traceparents; i++)
		traceparents[i] = PARENT;
	traceparents[0] = "nonsense";
	fresh_ring();
	random_init(&random, 1);
	assert_true(otlp_ring_put(&ring, "shop", &report));
	assert_true(otlp_ring_take(&ring, batch));
	assert_int_equal(batch->n_links, OTLP_LINKS_MAX);
	body = otlp_spans_json(batch, 1, &sender, &random.base);
	assert_non_null(body);
	span = json_array_get(
		json_object_get(
			json_array_get(json_object_get(
					       json_array_get(json_object_get(body, "resourceSpans"),
							      0),
					       "scopeSpans"),
				       0),
			"spans"),
		0);
	assert_string_equal(text_at(span, "name"), "send events");
	assert_int_equal(strlen(text_at(span, "traceId")), 32);
	assert_int_equal(strlen(text_at(span, "spanId")), 16);
	assert_string_equal(text_at(span, "startTimeUnixNano"), "1800000000000000000");
	assert_string_equal(text_at(span, "endTimeUnixNano"), "1800000000002000000");
	assert_int_equal(json_integer_value(json_object_get(span, "droppedLinksCount")), 4);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(span, "status"), "code")),
			 2);
	link = json_array_get(json_object_get(span, "links"), 0);
	assert_string_equal(text_at(link, "traceId"), "0af7651916cd43dd8448eb211c80319c");
	assert_string_equal(text_at(link, "spanId"), "b7ad6b7169203331");
	json_decref(body);
	free(batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parents),
		cmocka_unit_test(a_full_ring_takes_no_more),
		cmocka_unit_test(many_write_and_nothing_is_torn),
		cmocka_unit_test(a_span_says_what_happened),
	};

	return cmocka_run_group_tests_name("otlp", tests, NULL, NULL);
}
