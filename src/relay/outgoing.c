/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/outgoing.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_listed(const struct target_plan *target, const char *name)
{
	for (size_t i = 0; i < target->n_headers; i++)
		if (strcasecmp(target->headers[i], name) == 0)
			return true;
	return false;
}

static bool may_leave(const struct relay_plan *plan, const struct target_plan *target,
		      const char *name)
{
	return target->envelope != OUTBOX_ENVELOPE_EXTERNAL || is_listed(target, name) ||
	       (plan->replay && strcmp(name, REPLAY_HEADER) == 0);
}

/* "2026-11-15T18:00:00Z 42": the sequence; 0: none, it was spooled by an older program. */
static int64_t sequence_of(struct outbox_header *header, struct outbox_arena *arena)
{
	const char *blank = strchr(header->value, ' ');
	char *time = blank ? outbox_arena_text(arena, header->value) : NULL;

	if (!time)
		return 0;
	time[blank - header->value] = '\0';
	header->value = time;
	return strtoll(blank + 1, NULL, 10);
}

static int prepare_one(const struct relay_plan *plan, const struct target_plan *target,
		       struct outbox_arena *arena, struct outbox_item *item,
		       struct outbox_error *err)
{
	struct outbox_message *m = outbox_arena_alloc(arena, sizeof(*m));
	const struct outbox_message *from = item->message;
	struct outbox_header *headers =
		outbox_arena_alloc(arena, (from->n_headers + 1) * sizeof(*headers));
	size_t n = 0;

	if (!m || !headers)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < from->n_headers; i++) {
		int64_t sequence;

		if (!may_leave(plan, target, from->headers[i].name))
			continue;
		headers[n++] = from->headers[i];
		if (!plan->replay || strcmp(headers[n - 1].name, REPLAY_HEADER) != 0)
			continue;
		sequence = sequence_of(&headers[n - 1], arena);
		item->seq = sequence > 0 ? sequence : item->seq;
	}
	*m = *from;
	m->headers = headers;
	m->n_headers = n;
	if (!may_leave(plan, target, "traceparent"))
		m->traceparent = NULL;
	item->message = m;
	return OUTBOX_OK;
}

int outgoing_prepare(struct batch *b, const struct relay_plan *plan,
		     const struct target_plan *target, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (target->envelope != OUTBOX_ENVELOPE_EXTERNAL && !plan->replay)
		return OUTBOX_OK;
	for (size_t i = 0; i < b->claim.count && !r; i++)
		r = prepare_one(plan, target, b->arena, &b->items[i], err);
	return r;
}
