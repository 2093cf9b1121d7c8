/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct batch *batch_new(void)
{
	struct batch *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->arena = outbox_arena_new((size_t)64 << 20);
	assert_non_null(b->arena);
	b->batch.items = b->pointers;
	b->batch.memory = b->arena;
	return b;
}

void batch_free(struct batch *b)
{
	outbox_arena_free(b->arena);
	free(b);
}

struct outbox_message *batch_add(struct batch *b, const char *prefix)
{
	size_t i = b->batch.count++;
	struct outbox_message *m = &b->messages[i];
	char text[100];

	assert_true(i < BATCH_MAX);
	*m = (struct outbox_message)OUTBOX_MESSAGE_INIT;
	snprintf(text, sizeof(text), "%s-%zu", prefix, i);
	m->id = outbox_arena_text(b->arena, text);
	snprintf(text, sizeof(text), "ok.%zu", i);
	m->type = outbox_arena_text(b->arena, text);
	m->data = "{}";
	m->size = 2;
	m->content_type = "application/json";
	m->kind = OUTBOX_KIND_EVENT;
	m->source = "/outbox/test";
	m->event_time = 1763197200 * OUTBOX_SECONDS;
	b->items[i] = (struct outbox_item){ .message = m, .seq = (int64_t)i + 1 };
	b->pointers[i] = &b->items[i];
	return m;
}

void batch_add_many(struct batch *b, const char *prefix, size_t count)
{
	for (size_t i = 0; i < count; i++)
		batch_add(b, prefix);
}

outbox_time in_seconds(int seconds)
{
	struct outbox_clock *clock = outbox_clock_system();

	return clock->mono(clock) + seconds * OUTBOX_SECONDS;
}

struct outbox_transport *transport_to(const char *format, ...)
{
	struct outbox_transport *transport = NULL;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_transport_config config = { .struct_size = sizeof(config),
						  .clock = outbox_clock_system(),
						  .target = "target" };
	char url[400];
	va_list args;

	va_start(args, format);
	vsnprintf(url, sizeof(url), format, args);
	va_end(args);
	config.url = url;
	if (nats_transport_ops.open(&config, &transport, &err) ||
	    transport->ops->connect(transport, in_seconds(10), &err))
		fail_msg("%s: %s", url, err.message);
	return transport;
}

int batch_publish(struct batch *b, struct outbox_transport *transport, int seconds)
{
	for (size_t i = 0; i < b->batch.count; i++)
		outbox_batch_verdict(&b->batch, i, OUTBOX_VERDICT_UNSET, 0, NULL);
	b->err = (struct outbox_error)OUTBOX_ERROR_INIT;
	return transport->ops->publish(transport, &b->batch, in_seconds(seconds), &b->err);
}

size_t batch_count(const struct batch *b, int verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < b->batch.count; i++)
		n += b->items[i].verdict == verdict;
	return n;
}

void assert_verdict(const struct batch *b, size_t i, int verdict, const char *reason)
{
	const char *is = b->items[i].reason;

	if (b->items[i].verdict != verdict || (!reason != !is) || (reason && !strstr(is, reason)))
		fail_msg("%s: verdict %d (%s), not %d (%s)", b->messages[i].id, b->items[i].verdict,
			 is ? is : "no reason", verdict, reason ? reason : "no reason");
}
