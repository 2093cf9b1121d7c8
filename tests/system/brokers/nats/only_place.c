/* SPDX-License-Identifier: Apache-2.0 */
/* A target whose only stream or subject refuses: an outage, and no message is charged for it. */

#include "batch.h"
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT ((size_t)6)

struct world {
	struct place *place;
	struct batch *batch;
	struct outbox_transport *transport;
};

/* The path of the URL, %s is the place's name. */
static struct world enter(void (*change)(jsStreamConfig *), const char *before, const char *after)
{
	struct world w = { .place = place_new_with(change), .batch = batch_new() };

	w.transport = transport_to("nats://127.0.0.1:%d/%s%s%s", place_port(), before,
				   place_name(w.place), after);
	batch_add_many(w.batch, "a", COUNT);
	return w;
}

static void leave(struct world *w)
{
	w->transport->ops->close(w->transport);
	batch_free(w->batch);
	place_free(w->place);
}

static void assert_outage(struct world *w, int status, const char *words)
{
	int r = batch_publish(w->batch, w->transport, 8);

	if (r != status || !strstr(w->batch->err.message, words))
		fail_msg("%s: %s", outbox_status_name(r), w->batch->err.message);
	assert_int_equal(batch_count(w->batch, OUTBOX_VERDICT_UNSET), COUNT);
}

/* ---- full, and a later one finds room ------------------------------------------------------------- */

static void small(jsStreamConfig *config)
{
	config->MaxBytes = 4000;
	config->Discard = js_DiscardNew;
}

static char large[5000];

/* The first does not fit, those behind it do. */
static int publish_large_first(struct world *w)
{
	memset(large, 'x', sizeof(large));
	w->batch->messages[0].data = large;
	w->batch->messages[0].size = sizeof(large);
	w->batch->messages[0].content_type = "text/plain";
	return batch_publish(w->batch, w->transport, 8);
}

static void a_full_stream_is_an_outage_though_a_later_one_was_stored(void **state)
{
	static const char *const urls[] = { ".{type}?stream=", ".x?stream=", ".x" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct world w = enter(small, "", "");
		char path[100];

		snprintf(path, sizeof(path), "%s%s", urls[i], i < 2 ? place_name(w.place) : "");
		w.transport->ops->close(w.transport);
		w.transport = transport_to("nats://127.0.0.1:%d/%s%s", place_port(),
					   place_name(w.place), path);
		assert_int_equal(publish_large_first(&w), OUTBOX_EFULL);
		assert_verdict(w.batch, 0, OUTBOX_VERDICT_UNSET, NULL);
		assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), COUNT - 1);
		leave(&w);
	}
}

static void with_streams_by_template_it_is_charged(void **state)
{
	struct world w = enter(small, "", ".{type}");

	(void)state;
	assert_int_equal(publish_large_first(&w), OUTBOX_OK);
	assert_verdict(w.batch, 0, OUTBOX_RETRY, "maximum bytes exceeded");
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), COUNT - 1);
	leave(&w);
}

static void one_each(jsStreamConfig *config)
{
	config->MaxMsgsPerSubject = 1;
	config->Discard = js_DiscardNew;
	config->DiscardNewPerSubject = true;
}

/* One subject of several is full: the message's own problem. */
static void a_full_subject_is_charged(void **state)
{
	struct world w = enter(one_each, "", ".{type}");
	const char *type = w.batch->messages[0].type;

	(void)state;
	w.transport->ops->close(w.transport);
	w.transport = transport_to("nats://127.0.0.1:%d/%s.{type}?stream=%s", place_port(),
				   place_name(w.place), place_name(w.place));
	w.batch->messages[1].type = type;
	assert_int_equal(batch_publish(w.batch, w.transport, 8), OUTBOX_OK);
	assert_verdict(w.batch, 1, OUTBOX_RETRY, "per subject exceeded");
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), COUNT - 1);
	leave(&w);
}

/* ---- nobody takes the one subject ------------------------------------------------------------------ */

static void a_subject_without_a_stream(void **state)
{
	struct world w = enter(NULL, "nobody.", "");

	(void)state;
	assert_outage(&w, OUTBOX_EAUTH, "no stream accepts the subject \"nobody.");
	assert_int_equal(w.batch->err.native, 503);
	/* As soon as somebody has made it. */
	w.transport->ops->close(w.transport);
	w.transport = transport_to("nats://127.0.0.1:%d/%s.x", place_port(), place_name(w.place));
	assert_int_equal(batch_publish(w.batch, w.transport, 8), OUTBOX_OK);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), COUNT);
	leave(&w);
}

static void a_subject_that_only_listeners_take(void **state)
{
	struct world w = enter(NULL, "heard.", "");
	natsConnection *nc = NULL;
	natsSubscription *sub = NULL;

	(void)state;
	assert_int_equal(natsConnection_ConnectTo(&nc, getenv("OUTBOX_TEST_NATS")), NATS_OK);
	assert_int_equal(natsConnection_SubscribeSync(&sub, nc, "heard.>"), NATS_OK);
	assert_int_equal(natsConnection_Flush(nc), NATS_OK);
	assert_outage(&w, OUTBOX_EAUTH, "though something else subscribes to it");
	natsSubscription_Destroy(sub);
	natsConnection_Destroy(nc);
	leave(&w);
}

static void a_subject_of_another_stream(void **state)
{
	struct world w = enter(NULL, "", ".x?stream=ANOTHER");

	(void)state;
	assert_outage(&w, OUTBOX_EAUTH, "there is no stream \"ANOTHER\"");
	assert_int_equal(w.batch->err.native, 10060);
	leave(&w);
}

/* With a stream that was named, subjects by template have no other place either. */
static void a_stream_that_is_not_there(void **state)
{
	static const char *const before[] = { "nobody.", "" };

	(void)state;
	for (size_t i = 0; i < 2; i++) { /* no stream has the subjects; another one has */
		struct world w = enter(NULL, before[i], ".{type}?stream=ANOTHER");

		assert_outage(&w, OUTBOX_EAUTH, "there is no stream \"ANOTHER\"; create it");
		leave(&w);
	}
}

/* It is there, and has other subjects: that is between the message and its subject. */
static void a_stream_that_is_there_and_takes_others(void **state)
{
	struct world w = enter(NULL, "nobody.{type}?stream=", "");

	(void)state;
	assert_int_equal(batch_publish(w.batch, w.transport, 8), OUTBOX_OK);
	assert_int_equal(batch_count(w.batch, OUTBOX_RETRY), COUNT);
	leave(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_stream_is_an_outage_though_a_later_one_was_stored),
		cmocka_unit_test(with_streams_by_template_it_is_charged),
		cmocka_unit_test(a_full_subject_is_charged),
		cmocka_unit_test(a_subject_without_a_stream),
		cmocka_unit_test(a_subject_that_only_listeners_take),
		cmocka_unit_test(a_subject_of_another_stream),
		cmocka_unit_test(a_stream_that_is_not_there),
		cmocka_unit_test(a_stream_that_is_there_and_takes_others),
	};

	if (!getenv("NATS_PORT")) {
		printf("skipped: no server: run it with tests/support/with-nats\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
