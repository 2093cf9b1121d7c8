/* SPDX-License-Identifier: Apache-2.0 */
/* What a server refuses, and what never reaches it: each row of the table in docs/transports/nats.md. */

#include "batch.h"
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PAYLOAD ((size_t)8 << 20) /* of with-nats */

struct world {
	struct place *place;
	struct batch *batch;
	struct outbox_transport *transport;
};

static struct world enter(void (*change)(jsStreamConfig *), const char *options)
{
	struct world w = { .place = place_new_with(change), .batch = batch_new() };

	w.transport = transport_to("nats://127.0.0.1:%d/%s.{type}%s", place_port(),
				   place_name(w.place), options);
	return w;
}

static void leave(struct world *w)
{
	w->transport->ops->close(w->transport);
	batch_free(w->batch);
	place_free(w->place);
}

/* A transport whose subjects no stream takes, except with the place's name in front. */
static void aim_anywhere(struct world *w, const char *topic_of_bad)
{
	w->transport->ops->close(w->transport);
	w->transport = transport_to("nats://127.0.0.1:%d/{topic}.{type}", place_port());
	for (size_t i = 0; i < w->batch->batch.count; i++)
		w->batch->messages[i].topic =
			i % 7 == 6 && topic_of_bad ? topic_of_bad : place_name(w->place);
}

static void a_subject_without_a_stream_fails_alone(void **state)
{
	struct world w = enter(NULL, "");

	(void)state;
	batch_add_many(w.batch, "a", 100);
	aim_anywhere(&w, "nobody");
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	for (size_t i = 0; i < 100; i++) {
		assert_verdict(w.batch, i, i % 7 == 6 ? OUTBOX_RETRY : OUTBOX_ACKED,
			       i % 7 == 6 ? "no stream accepts the subject \"nobody.ok." : NULL);
		assert_int_equal(w.batch->items[i].native, i % 7 == 6 ? 503 : 0);
	}
	assert_int_equal(place_count(w.place), 86);
	leave(&w);
}

static void no_stream_at_all_is_charged_while_jetstream_lives(void **state)
{
	struct world w = enter(NULL, "");

	(void)state;
	batch_add(w.batch, "a");
	aim_anywhere(&w, NULL);
	w.batch->messages[0].topic = "nobody";
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	assert_verdict(w.batch, 0, OUTBOX_RETRY, "create one");
	leave(&w);
}

static void only_listeners_are_no_stream(void **state)
{
	struct world w = enter(NULL, "");
	natsConnection *nc = NULL;
	natsSubscription *sub = NULL;

	(void)state;
	assert_int_equal(natsConnection_ConnectTo(&nc, getenv("OUTBOX_TEST_NATS")), NATS_OK);
	assert_int_equal(natsConnection_SubscribeSync(&sub, nc, "listener.>"), NATS_OK);
	assert_int_equal(natsConnection_Flush(nc), NATS_OK);
	batch_add_many(w.batch, "a", 20);
	aim_anywhere(&w, "listener");
	assert_int_equal(batch_publish(w.batch, w.transport, 8), OUTBOX_OK);
	for (size_t i = 0; i < 20; i++)
		assert_verdict(w.batch, i, i % 7 == 6 ? OUTBOX_RETRY : OUTBOX_ACKED,
			       i % 7 == 6 ? "no stream accepts the subject" : NULL);
	/* The connection is as good as before. */
	aim_anywhere(&w, NULL);
	assert_int_equal(batch_publish(w.batch, w.transport, 8), OUTBOX_OK);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 20);
	natsSubscription_Destroy(sub);
	natsConnection_Destroy(nc);
	leave(&w);
}

static const char *const lies[] = {
	"",
	"ok",
	"{}",
	"[1]",
	"{\"seq\":1}",
	"{\"stream\":\"S\"}",
	"{\"stream\":\"S\", \"seq\":0}",
	"{\"stream\":1, \"seq\":1}",
	"{\"stream\":\"\", \"seq\":5}",
	"{\"stream\":\"S\", \"seq\":-1}",
	"{\"stream\":\"S\", \"seq\":1",
	"{\"stream\":\"S\", \"seq\":1}x",
	"{\"error\":{}}",
	"{\"error\":\"no\",\"stream\":\"S\",\"seq\":1}",
};
enum { LIES = sizeof(lies) / sizeof(lies[0]) };

static void lie(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *closure)
{
	int *told = closure;

	(void)sub;
	natsConnection_PublishString(nc, natsMsg_GetReply(msg), lies[(*told)++ % LIES]);
	natsMsg_Destroy(msg);
}

static void an_answer_that_is_not_jetstreams_is_no_acknowledgement(void **state)
{
	struct world w = enter(NULL, "");
	natsConnection *nc = NULL;
	natsSubscription *sub = NULL;
	int told = 0;

	(void)state;
	assert_int_equal(natsConnection_ConnectTo(&nc, getenv("OUTBOX_TEST_NATS")), NATS_OK);
	assert_int_equal(natsConnection_Subscribe(&sub, nc, "liar.>", lie, &told), NATS_OK);
	assert_int_equal(natsConnection_Flush(nc), NATS_OK);
	batch_add_many(w.batch, "a", LIES);
	aim_anywhere(&w, NULL);
	for (size_t i = 0; i < LIES; i++)
		w.batch->messages[i].topic = "liar";
	assert_int_equal(batch_publish(w.batch, w.transport, 8), OUTBOX_OK);
	for (size_t i = 0; i < LIES; i++)
		assert_verdict(w.batch, i, i < 12 ? OUTBOX_UNKNOWN : OUTBOX_RETRY,
			       i < 12 ? "not JetStream's" : "an error");
	natsSubscription_Destroy(sub);
	natsConnection_Destroy(nc);
	leave(&w);
}

/* They look right, but for messages of a batch that is over. */
static void late_answers_count_for_nothing(void **state)
{
	struct world w = enter(NULL, "");
	natsConnection *nc = NULL;
	natsSubscription *sub = NULL;

	(void)state;
	assert_int_equal(natsConnection_ConnectTo(&nc, getenv("OUTBOX_TEST_NATS")), NATS_OK);
	assert_int_equal(natsConnection_SubscribeSync(&sub, nc, "late.>"), NATS_OK);
	assert_int_equal(natsConnection_Flush(nc), NATS_OK);
	batch_add_many(w.batch, "a", 10);
	aim_anywhere(&w, NULL);
	for (size_t i = 0; i < 10; i++)
		w.batch->messages[i].topic = "late";
	assert_int_equal(batch_publish(w.batch, w.transport, 1), OUTBOX_ETIMEDOUT);
	for (size_t i = 0; i < 10; i++) {
		natsMsg *msg = NULL;

		assert_int_equal(natsSubscription_NextMsg(&msg, sub, 1000), NATS_OK);
		assert_int_equal(natsConnection_PublishString(nc, natsMsg_GetReply(msg),
							      "{\"stream\":\"S\", \"seq\":9}"),
				 NATS_OK);
		natsMsg_Destroy(msg);
	}
	assert_int_equal(natsConnection_Flush(nc), NATS_OK);
	assert_int_equal(batch_publish(w.batch, w.transport, 1), OUTBOX_ETIMEDOUT);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 0);
	natsSubscription_Destroy(sub);
	natsConnection_Destroy(nc);
	leave(&w);
}

static void size_limits(void **state)
{
	struct world w = enter(NULL, "");
	char *data = calloc(1, MAX_PAYLOAD + 1);
	size_t overhead;

	(void)state;
	assert_non_null(data);
	memset(data, 'x', MAX_PAYLOAD);
	batch_add_many(w.batch, "a", 3);
	w.batch->messages[1].content_type = "text/plain";
	w.batch->messages[1].data = data;
	w.batch->messages[1].size = MAX_PAYLOAD;
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	assert_verdict(w.batch, 0, OUTBOX_ACKED, NULL);
	assert_verdict(w.batch, 1, OUTBOX_REJECTED, "max_payload 8388608");
	assert_verdict(w.batch, 2, OUTBOX_ACKED, NULL);
	/* The largest that goes, and one byte more: the driver counts as the server does. */
	overhead = (size_t)strtoul(w.batch->items[1].reason, NULL, 10) - MAX_PAYLOAD;
	w.batch->messages[0].id = "b-0";
	w.batch->messages[2].id = "b-2";
	w.batch->messages[1].size = MAX_PAYLOAD - overhead;
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 3);
	w.batch->messages[1].id = "c-1";
	w.batch->messages[1].size++;
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	assert_verdict(w.batch, 1, OUTBOX_REJECTED, "8388609 bytes");
	free(data);
	leave(&w);
}

static void small_messages_only(jsStreamConfig *config)
{
	config->MaxMsgSize = 1000;
}

static void the_streams_own_limit(void **state)
{
	struct world w = enter(small_messages_only, "");
	char data[2000];

	(void)state;
	memset(data, 'x', sizeof(data));
	batch_add_many(w.batch, "a", 3);
	w.batch->messages[1].content_type = "text/plain";
	w.batch->messages[1].data = data;
	w.batch->messages[1].size = sizeof(data);
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	assert_verdict(w.batch, 1, OUTBOX_REJECTED, "(10054)");
	assert_int_equal(w.batch->items[1].native, 10054);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 2);
	leave(&w);
}

static void ten_then_refuse(jsStreamConfig *config)
{
	config->MaxMsgs = 10;
	config->Discard = js_DiscardNew;
}

static void ten_then_drop(jsStreamConfig *config)
{
	config->MaxMsgs = 10;
}

static void a_full_stream_is_an_outage(void **state)
{
	struct world w = enter(ten_then_refuse, "");

	(void)state;
	batch_add_many(w.batch, "a", 25);
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_EFULL);
	assert_non_null(strstr(w.batch->err.message, "10077"));
	for (size_t i = 0; i < 25; i++)
		assert_verdict(w.batch, i, i < 10 ? OUTBOX_ACKED : OUTBOX_VERDICT_UNSET, NULL);
	assert_int_equal(place_count(w.place), 10);
	leave(&w);
}

static void a_full_stream_beside_another_is_its_own_problem(void **state)
{
	struct world w = enter(ten_then_refuse, "");
	struct place *other = place_new();

	(void)state;
	batch_add_many(w.batch, "a", 40);
	aim_anywhere(&w, NULL);
	for (size_t i = 0; i < 40; i++)
		w.batch->messages[i].topic = i % 2 ? place_name(other) : place_name(w.place);
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 30);
	assert_verdict(w.batch, 38, OUTBOX_RETRY, "maximum messages exceeded");
	place_free(other);
	leave(&w);
}

static void a_stream_that_drops_takes_everything(void **state)
{
	struct world w = enter(ten_then_drop, "");

	(void)state;
	batch_add_many(w.batch, "a", 25);
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	assert_int_equal(batch_count(w.batch, OUTBOX_ACKED), 25);
	leave(&w);
}

static void the_expected_stream_is_checked(void **state)
{
	struct place *another = place_new(); /* one that is missing is an outage: only_place.c */
	char option[100];
	struct world w;

	(void)state;
	snprintf(option, sizeof(option), "?stream=%s", place_name(another));
	w = enter(NULL, option);
	batch_add_many(w.batch, "a", 3);
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	assert_verdict(w.batch, 0, OUTBOX_RETRY, "expected stream does not match (10060)");
	assert_int_equal(batch_count(w.batch, OUTBOX_RETRY), 3);
	assert_int_equal(place_count(w.place), 0);
	leave(&w);
	place_free(another);
}

static void a_duplicate_is_delivered(void **state)
{
	struct world w = enter(NULL, "");

	(void)state;
	batch_add_many(w.batch, "a", 5);
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	for (size_t i = 0; i < 5; i++)
		assert_false(w.batch->items[i].duplicate);
	batch_add(w.batch, "new");
	assert_int_equal(batch_publish(w.batch, w.transport, 10), OUTBOX_OK);
	for (size_t i = 0; i < 6; i++) {
		assert_verdict(w.batch, i, OUTBOX_ACKED, NULL);
		assert_int_equal(w.batch->items[i].duplicate, i < 5);
	}
	assert_int_equal(place_count(w.place), 6);
	leave(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_subject_without_a_stream_fails_alone),
		cmocka_unit_test(no_stream_at_all_is_charged_while_jetstream_lives),
		cmocka_unit_test(only_listeners_are_no_stream),
		cmocka_unit_test(an_answer_that_is_not_jetstreams_is_no_acknowledgement),
		cmocka_unit_test(late_answers_count_for_nothing),
		cmocka_unit_test(size_limits),
		cmocka_unit_test(the_streams_own_limit),
		cmocka_unit_test(a_full_stream_is_an_outage),
		cmocka_unit_test(a_full_stream_beside_another_is_its_own_problem),
		cmocka_unit_test(a_stream_that_drops_takes_everything),
		cmocka_unit_test(the_expected_stream_is_checked),
		cmocka_unit_test(a_duplicate_is_delivered),
	};

	if (!getenv("NATS_PORT")) {
		printf("skipped: no server: run it with tests/support/with-nats\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
