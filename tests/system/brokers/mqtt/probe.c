/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mqtt_probe URL [COUNT [CONNECT_SECONDS [PUBLISH_SECONDS [TYPES [BYTES [BATCHES]]]]]]: connect, publish COUNT messages,
 * and print one line each: "connect STATUS text", "publish STATUS acked N rejected N retry N unknown N unset N native N
 * text; reason", where native and reason are the first refused message's. TYPES: "a,b,c", in turn. BYTES: the payload's
 * size. BATCHES: so often, on one connection. For the tests that play with brokers.
 */

#include <outbox/arena.h>
#include <outbox/transport.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 5000

extern const struct outbox_transport_ops mqtt_transport_ops;

static struct outbox_message messages[COUNT_MAX];
static struct outbox_item items[COUNT_MAX], *pointers[COUNT_MAX];
static char *payload;

static long number(int argc, char **argv, int i, long normal)
{
	return argc > i ? strtol(argv[i], NULL, 10) : normal;
}

static outbox_time in_seconds(long seconds)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock) + seconds * OUTBOX_SECONDS;
}

static const char *type_of(struct outbox_arena *arena, const char *types, size_t i)
{
	size_t n = 1, length;
	char text[70000];

	for (const char *at = types; *at; at++)
		n += *at == ',';
	for (i %= n; i > 0; i--)
		types = strchr(types, ',') + 1;
	length = strcspn(types, ",");
	snprintf(text, sizeof(text), "%.*s", (int)length, types);
	return outbox_arena_text(arena, text);
}

static void make(struct outbox_batch *batch, size_t count, const char *types, size_t bytes)
{
	char id[40];

	payload = calloc(1, bytes + 1);
	memset(payload, 'x', bytes);
	for (size_t i = 0; i < count; i++) {
		struct outbox_message *m = &messages[i];

		*m = (struct outbox_message)OUTBOX_MESSAGE_INIT;
		snprintf(id, sizeof(id), "probe-%zu", i);
		m->id = outbox_arena_text(batch->memory, id);
		m->type = type_of(batch->memory, types, i);
		m->data = payload;
		m->size = bytes;
		m->content_type = "text/plain";
		m->kind = OUTBOX_KIND_EVENT;
		m->source = "/outbox/probe";
		m->event_time = 1763197200 * OUTBOX_SECONDS;
		items[i] = (struct outbox_item){ .message = m, .seq = (int64_t)i + 1 };
		pointers[i] = &items[i];
	}
	batch->count = count;
}

static size_t count_of(const struct outbox_batch *batch, int verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < batch->count; i++)
		n += batch->items[i]->verdict == verdict;
	return n;
}

static void publish(struct outbox_transport *transport, struct outbox_batch *batch, long seconds)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	const char *reason = "";
	int r, native = 0;

	for (size_t i = 0; i < batch->count; i++)
		items[i] = (struct outbox_item){ .message = &messages[i], .seq = (int64_t)i + 1 };
	r = transport->ops->publish(transport, batch, in_seconds(seconds), &err);
	for (size_t i = batch->count; i-- > 0;)
		if (items[i].native && (items[i].verdict != OUTBOX_ACKED || native < 0x80))
			native = items[i].native;
	for (size_t i = batch->count; i-- > 0;)
		reason = items[i].reason ? items[i].reason : reason;
	printf("publish %s acked %zu rejected %zu retry %zu unknown %zu unset %zu native %d %s; %s\n",
	       outbox_status_name(r), count_of(batch, OUTBOX_ACKED),
	       count_of(batch, OUTBOX_REJECTED), count_of(batch, OUTBOX_RETRY),
	       count_of(batch, OUTBOX_UNKNOWN), count_of(batch, OUTBOX_VERDICT_UNSET),
	       native ? native : err.native, err.message, reason);
	fflush(stdout);
}

/* Whoever links the driver keeps what he does about SIGPIPE, and is not killed by it either. */
static bool keeps_sigpipe(void)
{
	struct sigaction action;

	sigaction(SIGPIPE, NULL, &action);
	return action.sa_handler == SIG_DFL;
}

int main(int argc, char **argv)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_transport *transport = NULL;
	struct outbox_transport_config config = { .struct_size = sizeof(config),
						  .clock = outbox_clock_system(),
						  .target = "probe",
						  .url = argc > 1 ? argv[1] : "" };
	struct outbox_batch batch = { .items = pointers,
				      .memory = outbox_arena_new((size_t)64 << 20) };
	int r = mqtt_transport_ops.open(&config, &transport, &err);

	signal(SIGPIPE, SIG_DFL);
	if (r) {
		printf("open %s %s\n", outbox_status_name(r), err.message);
		return 1;
	}
	r = transport->ops->connect(transport, in_seconds(number(argc, argv, 3, 5)), &err);
	printf("connect %s native %d %s\n", outbox_status_name(r), err.native, err.message);
	fflush(stdout);
	make(&batch, (size_t)number(argc, argv, 2, 1), argc > 5 ? argv[5] : "order.placed",
	     (size_t)number(argc, argv, 6, 2));
	for (long n = number(argc, argv, 7, 1); !r && n > 0; n--)
		publish(transport, &batch, number(argc, argv, 4, 5));
	transport->ops->close(transport);
	free(payload);
	outbox_arena_free(batch.memory);
	return r || !keeps_sigpipe() ? (keeps_sigpipe() ? 1 : 3) : 0;
}
