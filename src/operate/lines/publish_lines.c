/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Twice through the lines: first they are only checked, so that a mistake in the last one is told before the first one
 * is written. There is no note of how far a run came: every message has an id, its own or one that is made of its line,
 * and an id is accepted once. So whatever ends a run, the same run again writes what is missing and nothing else.
 */
#include "operate/lines/publish_lines.h"

#include "base/cleanup.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES ((size_t)8 << 20)
#define ARENA_BYTES ((size_t)256 << 20) /* a batch, and the longest line in all its forms */
/* Where one writes at a time, relays and publishers look for their turn only now and then. */
#define TURN OUTBOX_SECONDS
#define REST (100 * OUTBOX_MILLISECONDS)

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

static bool is_blank(const char *line, size_t size)
{
	return strspn(line, " \t\r") == size;
}

/* The next line that is not blank; its end: *ret_line is NULL. */
static int next_line(struct publish_lines *lines, const char **ret_line, size_t *ret_size,
		     struct outbox_error *err)
{
	int r;

	do
		r = line_reader_next(lines->reader, ret_line, ret_size, err);
	while (r == OUTBOX_OK && *ret_line && is_blank(*ret_line, *ret_size));
	return r;
}

/* A message of the line, with an id. */
static int read_line(struct publish_lines *lines, const char *line, size_t size,
		     struct outbox_arena *arena, struct outbox_message *ret_message,
		     struct outbox_error *err)
{
	char *id;
	int r = message_line_read(line, size, lines->format, arena, ret_message, err);

	if (r == OUTBOX_EINVAL && !line_reader_whole(lines->reader))
		return outbox_fail(err, r,
				   "%s (the file ends here without a line break: was it cut off?)",
				   err->message);
	if (r || ret_message->id)
		return r;
	id = outbox_arena_alloc(arena, 37);
	if (!id)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = lines->make_id(lines->context, line_reader_lines(lines->reader), line, size, id, err);
	ret_message->id = id;
	return r;
}

int publish_lines_check(struct publish_lines *lines, const struct bulk *bulk,
			struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ARENA_BYTES);
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct outbox_message message;
	const char *line;
	size_t size;
	int r = arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	while (r == OUTBOX_OK) {
		r = next_line(lines, &line, &size, err);
		if (r || !line)
			break;
		outbox_arena_reset(arena);
		r = read_line(lines, line, size, arena, &message, &why);
		lines->messages += r == OUTBOX_OK;
		lines->wrong += r == OUTBOX_EINVAL;
		if (r == OUTBOX_EINVAL)
			lines->say_wrong(lines->context, line_reader_lines(lines->reader),
					 why.message);
		if (r && r != OUTBOX_EINVAL)
			return outbox_fail(err, r, "%s", why.message);
		r = OUTBOX_OK;
		bulk_progress(bulk, lines->messages + lines->wrong);
	}
	return r;
}

struct batch {
	struct outbox_arena *arena;
	struct outbox_message *messages;
	bool *repeated;
	size_t count, bytes;
};

/* Lines up to a whole batch; *ret_end: there are no more. */
static int fill_batch(struct publish_lines *lines, struct batch *batch, bool *ret_end,
		      struct outbox_error *err)
{
	int r = OUTBOX_OK;

	outbox_arena_reset(batch->arena);
	batch->count = batch->bytes = 0;
	while (r == OUTBOX_OK && batch->count < lines->batch && batch->bytes < BATCH_BYTES) {
		const char *line;
		size_t size;

		r = next_line(lines, &line, &size, err);
		*ret_end = r == OUTBOX_OK && !line;
		if (r || !line)
			break;
		r = read_line(lines, line, size, batch->arena, &batch->messages[batch->count], err);
		if (r == OUTBOX_EINVAL && lines->skip_invalid) {
			r = OUTBOX_OK;
			continue;
		}
		if (r == OUTBOX_EINVAL)
			return outbox_wrap(err, "it changed since it was checked; line %lld",
					   (long long)line_reader_lines(lines->reader));
		batch->count++;
		batch->bytes += size;
	}
	return r;
}

static int append_batch(struct publish_lines *lines, struct batch *batch, struct outbox_error *err)
{
	int r;

	if (!batch->count)
		return OUTBOX_OK;
	memset(batch->repeated, 0, batch->count * sizeof(*batch->repeated));
	r = store_append(lines->store, batch->messages, batch->count, NULL, batch->repeated, err);
	for (size_t i = 0; r == OUTBOX_OK && i < batch->count; i++) {
		lines->repeated += batch->repeated[i];
		lines->published += !batch->repeated[i];
	}
	return r;
}

static int append_all(struct publish_lines *lines, struct batch *batch, const struct bulk *bulk,
		      struct outbox_error *err)
{
	outbox_time rested = lines->clock->mono(lines->clock);
	bool end = false;
	int r = line_reader_rewind(lines->reader, err);

	while (r == OUTBOX_OK && !end && !lines->ended) {
		int64_t done;
		bool turn;

		r = fill_batch(lines, batch, &end, err);
		if (r == OUTBOX_OK)
			r = append_batch(lines, batch, err);
		if (r || end)
			break;
		done = lines->published + lines->repeated;
		turn = lines->clock->mono(lines->clock) - rested >= TURN;
		bulk_progress(bulk, done);
		lines->ended = bulk_rest(bulk, done, turn ? REST : 0);
		if (turn)
			rested = lines->clock->mono(lines->clock);
	}
	return r;
}

int publish_lines_append(struct publish_lines *lines, const struct bulk *bulk,
			 struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ARENA_BYTES);
	_cleanup_(cleanup_free) struct outbox_message *messages = NULL;
	_cleanup_(cleanup_free) bool *repeated = NULL;
	struct batch batch = { .arena = arena };

	messages = calloc(lines->batch, sizeof(*messages));
	repeated = calloc(lines->batch, sizeof(*repeated));
	if (!arena || !messages || !repeated)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	batch.messages = messages;
	batch.repeated = repeated;
	return append_all(lines, &batch, bulk, err);
}
