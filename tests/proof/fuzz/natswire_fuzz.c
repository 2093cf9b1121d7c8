/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a NATS server says, hostile or not: frames lie within what came, and are the same whether it comes at once or
 * byte by byte.
 */

#include "fuzz.h"
#include "transport/nats/frames.h"

#include <stdlib.h>
#include <string.h>

struct summary {
	uint64_t hash;
	size_t count;
	bool ended;
};

static void mix(struct summary *s, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		s->hash = (s->hash ^ bytes[i]) * 1099511628211u;
}

static void add_frame(struct summary *s, const struct wire *wire, const struct nats_frame *frame)
{
	const char *begin = wire->in.data, *end = begin + wire->in.size;

	CHECK(frame->kind <= FRAME_ERROR && wire->taken <= wire->in.size);
	CHECK(frame->text >= begin && frame->text + strlen(frame->text) < end);
	mix(s, &frame->kind, sizeof(frame->kind));
	mix(s, frame->text, strlen(frame->text));
	if (frame->kind == FRAME_MESSAGE) {
		CHECK(frame->data >= begin && frame->size <= (size_t)(end - frame->data));
		mix(s, &frame->sid, sizeof(frame->sid));
		mix(s, &frame->status, sizeof(frame->status));
		mix(s, frame->data, frame->size);
	}
	s->count++;
}

/* Hand the bytes over in pieces of `step`. */
static struct summary parse(const uint8_t *data, size_t size, size_t step)
{
	struct summary s = { .hash = 14695981039346656037u };
	struct nats_frame frame;
	struct wire wire;

	wire_init(&wire, outbox_clock_system());
	wire.ended = false; /* as after connecting */
	for (size_t at = 0; at < size && !wire.ended; at += step) {
		buf_append(&wire.in, data + at, size - at < step ? size - at : step);
		while (!wire.ended && nats_frame_next(&wire, &frame))
			add_frame(&s, &wire, &frame);
	}
	s.ended = wire.ended;
	CHECK(!wire.ended || (wire.status && is_printable(wire.why, strlen(wire.why))));
	wire_deinit(&wire);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct summary whole = parse(data, size, size ? size : 1), bytes = parse(data, size, 1);

	CHECK(whole.hash == bytes.hash && whole.count == bytes.count && whole.ended == bytes.ended);
	return 0;
}
