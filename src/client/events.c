/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events are copied into an arena, which ends with the unit. Written ones are held as long as a savepoint may undo their
 * INSERT: what was collected before it must be written once more then.
 */
#include "client/events.h"

#include "base/sized.h"
#include "client/publish.h"
#include "core/message.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct outbox_events_config events_config(const struct outbox_events_config *config)
{
	struct outbox_events_config view = OUTBOX_EVENTS_CONFIG_INIT;

	if (config)
		sized_copy(&view, sizeof(view), config, config->struct_size);
	if (!view.max_messages)
		view.max_messages = OUTBOX_EVENTS_MAX;
	if (!view.max_bytes)
		view.max_bytes = OUTBOX_EVENTS_BYTES_MAX;
	return view;
}

int events_init(struct outbox_events *events, const struct events_ops *ops,
		struct outbox_publisher *publisher, const struct outbox_events_config *config,
		struct outbox_error *err)
{
	events->ops = ops;
	events->publisher = publisher;
	events->max_messages = config->max_messages;
	events->max_bytes = config->max_bytes;
	events->arena = outbox_arena_new(SIZE_MAX);
	events->context_arena = outbox_arena_new(SIZE_MAX);
	return events->arena && events->context_arena
		       ? OUTBOX_OK
		       : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

void events_deinit(struct outbox_events *events)
{
	outbox_publisher_free(events->publisher);
	outbox_arena_free(events->arena);
	outbox_arena_free(events->context_arena);
	free(events->messages);
}

/* ---- the unit ------------------------------------------------------------------------------------ */

static void forget_all(struct outbox_events *events)
{
	events->count = events->written = events->bytes = 0;
	outbox_arena_reset(events->arena);
}

void events_rewind(struct outbox_events *events, size_t collected, size_t written)
{
	if (events->count > collected)
		events->count = collected;
	if (events->written > written)
		events->written = written;
	if (events->written > events->count)
		events->written = events->count;
	if (!events->count)
		forget_all(events);
}

void events_end(struct outbox_events *events)
{
	forget_all(events);
	outbox_arena_reset(events->context_arena);
	events->context = (struct outbox_message){ 0 };
	events->state = UNIT_NONE;
	events->committed = events->marked = events->harvesting = false;
}

void events_over(struct outbox_events *events, bool committed)
{
	if (events_unwritten(events) == 0) {
		events_end(events);
		return;
	}
	events->state = UNIT_OVER;
	events->committed = committed;
}

static int refuse_rest(const struct outbox_events *events, struct outbox_error *err)
{
	return outbox_fail(
		err, OUTBOX_ECONFLICT,
		events->committed
			? "events: a transaction was committed without %zu events that were collected in "
			  "it; call outbox_events_drop() to go on without them"
			: "events: %zu collected events are not written; call outbox_events_flush() "
			  "before COMMIT, or outbox_events_drop() after a rollback",
		events_unwritten(events));
}

/* Of a transaction that was rolled back nothing is left to be done. */
static int check_rest(struct outbox_events *events, struct outbox_error *err)
{
	if (!events)
		return outbox_fail(err, OUTBOX_EINVAL, "events: the object is NULL");
	events->ops->settle(events);
	if (events->state != UNIT_NONE && events_unwritten(events) &&
	    (events->state == UNIT_OPEN || events->committed))
		return refuse_rest(events, err);
	return OUTBOX_OK;
}

static int check_open(struct outbox_events *events, struct outbox_error *err)
{
	if (!events)
		return outbox_fail(err, OUTBOX_EINVAL, "events: the object is NULL");
	events->ops->settle(events);
	if (events->state == UNIT_OPEN)
		return events->ops->check(events, err);
	if (events->state == UNIT_OVER && events->committed)
		return refuse_rest(events, err);
	return outbox_fail(err, OUTBOX_EINVAL,
			   "events: no unit is open in this transaction; call outbox_events_begin() after "
			   "BEGIN");
}

static const char *copy_text(struct outbox_arena *arena, const char *text, bool *ok)
{
	char *copy = outbox_arena_text(arena, text);

	*ok = *ok && (copy || !text);
	return copy;
}

static int copy_context(struct outbox_events *events, const struct outbox_message *context,
			struct outbox_error *err)
{
	struct outbox_message view = message_view(context);
	struct outbox_message inherited = { .type = "context",
					    .correlation_id = view.correlation_id,
					    .causation_id = view.causation_id,
					    .traceparent = view.traceparent };
	struct outbox_arena *arena = events->context_arena;
	bool ok = true;
	int r = outbox_message_validate(&inherited, 0, err);

	if (r != OUTBOX_OK) {
		if (err)
			outbox_wrap(err, "the events' context");
		return r;
	}
	events->context.correlation_id = copy_text(arena, view.correlation_id, &ok);
	events->context.causation_id = copy_text(arena, view.causation_id, &ok);
	events->context.traceparent = copy_text(arena, view.traceparent, &ok);
	return ok ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* Written events that are held may be unwritten again by a savepoint of this transaction: they are not to be forgotten. */
static int check_held(const struct outbox_events *events, struct outbox_error *err)
{
	if (events->state != UNIT_OPEN || !events->count)
		return OUTBOX_OK;
	return outbox_fail(
		err, OUTBOX_ECONFLICT,
		"events: a unit of this transaction is open, and a rollback to a savepoint may undo "
		"events of it; go on with that unit");
}

int outbox_events_begin(struct outbox_events *events, const struct outbox_message *context,
			struct outbox_error *err)
{
	int r = check_rest(events, err);

	if (r == OUTBOX_OK)
		r = check_held(events, err);
	if (r == OUTBOX_OK)
		r = events->ops->check(events, err);
	if (r != OUTBOX_OK)
		return r;
	events_end(events);
	if (context)
		r = copy_context(events, context, err);
	if (r == OUTBOX_OK)
		r = events->ops->join(events, err);
	if (r != OUTBOX_OK) {
		events_end(events);
		return r;
	}
	events->state = UNIT_OPEN;
	events->unit++;
	return OUTBOX_OK;
}

void outbox_events_drop(struct outbox_events *events)
{
	if (events)
		events_end(events);
}

int outbox_events_free(struct outbox_events *events, struct outbox_error *err)
{
	int r = events ? check_rest(events, err) : OUTBOX_OK;

	if (r == OUTBOX_OK && events)
		events->ops->free(events);
	return r;
}

size_t outbox_events_unwritten(struct outbox_events *events)
{
	if (!events)
		return 0;
	events->ops->settle(events);
	return events_unwritten(events);
}

/* ---- collecting ---------------------------------------------------------------------------------- */

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static size_t event_size(const struct outbox_message *m)
{
	size_t size = sizeof(*m) + m->size;

	for (size_t i = 0; i < m->n_headers; i++)
		size += sizeof(m->headers[i]) + text_size(m->headers[i].name) +
			text_size(m->headers[i].value);
	return size + text_size(m->type) + text_size(m->key) + text_size(m->content_type) +
	       text_size(m->id) + text_size(m->source) + text_size(m->subject) +
	       text_size(m->topic) + text_size(m->correlation_id) + text_size(m->causation_id) +
	       text_size(m->traceparent);
}

static int make_room(struct outbox_events *events, size_t size, struct outbox_error *err)
{
	size_t capacity = events->capacity ? events->capacity * 2 : 16;
	struct outbox_message *larger;

	if (events->count >= events->max_messages)
		return outbox_fail(err, OUTBOX_EFULL,
				   "events: %zu are collected, the limit (max_messages); call "
				   "outbox_events_flush() in between, or raise the limit",
				   events->count);
	if (size > events->max_bytes || events->bytes > events->max_bytes - size)
		return outbox_fail(
			err, OUTBOX_EFULL,
			"events: with this one they have more than %zu bytes, the limit "
			"(max_bytes); call outbox_events_flush() in between, or raise the limit",
			events->max_bytes);
	if (events->count < events->capacity)
		return OUTBOX_OK;
	larger = realloc(events->messages, capacity * sizeof(*larger));
	if (!larger)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	events->messages = larger;
	events->capacity = capacity;
	return OUTBOX_OK;
}

static bool copy_headers(struct outbox_events *events, struct outbox_message *m)
{
	struct outbox_header *copies;
	bool ok = true;

	if (!m->n_headers)
		return true;
	copies = outbox_arena_alloc(events->arena, m->n_headers * sizeof(*copies));
	for (size_t i = 0; copies && i < m->n_headers; i++) {
		copies[i].name = copy_text(events->arena, m->headers[i].name, &ok);
		copies[i].value = copy_text(events->arena, m->headers[i].value, &ok);
	}
	m->headers = copies;
	return copies && ok;
}

/* All that m points to becomes ours. */
static bool copy_event(struct outbox_events *events, struct outbox_message *m)
{
	const char **const texts[] = {
		&m->type,    &m->key,   &m->content_type,   &m->id,           &m->source,
		&m->subject, &m->topic, &m->correlation_id, &m->causation_id, &m->traceparent
	};
	bool ok = true;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*texts[i] = copy_text(events->arena, *texts[i], &ok);
	if (m->size) {
		m->data = outbox_arena_copy(events->arena, m->data, m->size);
		ok = ok && m->data;
	}
	return copy_headers(events, m) && ok;
}

static bool has_header(const struct outbox_message *m, const char *name)
{
	for (size_t i = 0; i < m->n_headers; i++)
		if (strcasecmp(m->headers[i].name, name) == 0)
			return true;
	return false;
}

static void inherit(struct outbox_message *m, const struct outbox_message *context)
{
	if (!m->correlation_id)
		m->correlation_id = context->correlation_id;
	if (!m->causation_id)
		m->causation_id = context->causation_id;
	if (!m->traceparent && !has_header(m, "traceparent"))
		m->traceparent = context->traceparent;
}

int outbox_events_add(struct outbox_events *events, const struct outbox_message *event,
		      struct outbox_error *err)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct outbox_message m;
	size_t size;
	int r = check_open(events, err);

	if (r == OUTBOX_OK)
		r = outbox_message_validate(event, 0, err);
	if (r != OUTBOX_OK)
		return r;
	m = message_view(event);
	inherit(&m, &events->context);
	if (!m.event_time)
		m.event_time = clock->wall(clock);
	size = event_size(&m);
	r = make_room(events, size, err);
	if (r != OUTBOX_OK)
		return r;
	if (!copy_event(events, &m))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	events->messages[events->count++] = m;
	events->bytes += size;
	return OUTBOX_OK;
}

int outbox_events_harvest(struct outbox_events *events, void *aggregate, outbox_harvester harvest,
			  struct outbox_error *err)
{
	bool outer;
	size_t collected;
	int r = check_open(events, err);

	if (r == OUTBOX_OK && !harvest)
		r = outbox_fail(err, OUTBOX_EINVAL, "events: the function that harvests is NULL");
	if (r != OUTBOX_OK)
		return r;
	collected = events->count;
	outer = events->harvesting;
	events->harvesting = true;
	r = harvest(events, aggregate, err);
	events->harvesting = outer;
	if (r != OUTBOX_OK)
		events_rewind(events, collected, events->written);
	return r;
}

/* ---- writing ------------------------------------------------------------------------------------- */

int outbox_events_flush(struct outbox_events *events, struct outbox_error *err)
{
	int r = check_open(events, err);

	if (r == OUTBOX_OK && events->harvesting)
		r = outbox_fail(
			err, OUTBOX_EINVAL,
			"events: an aggregate is being harvested; flush when all of it is there");
	if (r != OUTBOX_OK || events_unwritten(events) == 0)
		return r;
	r = outbox_publisher_publish_batch(events->publisher, events->messages + events->written,
					   events_unwritten(events), NULL, err);
	if (r != OUTBOX_OK)
		return r;
	events->written = events->count;
	if (!events->ops->holds(events))
		forget_all(events);
	return OUTBOX_OK;
}

int outbox_events_mark(struct outbox_events *events, struct outbox_events_mark *ret_mark,
		       struct outbox_error *err)
{
	int r = check_open(events, err);

	if (r == OUTBOX_OK && !ret_mark)
		r = outbox_fail(err, OUTBOX_EINVAL, "events: the mark is NULL");
	if (r != OUTBOX_OK)
		return r;
	events->marked = true;
	*ret_mark = (struct outbox_events_mark){ .unit = events->unit,
						 .collected = events->count,
						 .written = events->written };
	return OUTBOX_OK;
}

int outbox_events_rewind(struct outbox_events *events, const struct outbox_events_mark *mark,
			 struct outbox_error *err)
{
	int r = check_open(events, err);

	if (r == OUTBOX_OK && (!mark || mark->unit != events->unit))
		r = outbox_fail(
			err, OUTBOX_EINVAL,
			"events: the mark was not taken in this unit; take one after SAVEPOINT");
	if (r == OUTBOX_OK && events->ops->savepoints && events->written > mark->written)
		r = outbox_fail(
			err, OUTBOX_ECONFLICT,
			"events: %zu were written since the mark; ROLLBACK TO the savepoint first",
			events->written - mark->written);
	if (r == OUTBOX_OK)
		events_rewind(events, mark->collected, mark->written);
	return r;
}
