/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/replay_source.h"

#include "base/text.h"
#include "core/routing.h"
#include "operate/lines/event_line.h"
#include "operate/lines/line_reader.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#define LOG_PAGE 200

struct replay_source {
	struct replay_source_state state;
	/* an archive */
	struct line_reader *reader;
	char *path;
	bool salvage;
	struct outbox_error damage;
	/* or the log */
	struct outbox_store *store;
	outbox_time now;
	struct outbox_arena *page;
	struct outbox_claimed *messages;
	size_t n, at;
};

bool replay_wanted(const struct replay_filter *filter, const struct outbox_message *message)
{
	return (!filter->type || glob_match(filter->type, message->type)) &&
	       (!filter->key || (message->key && strcmp(filter->key, message->key) == 0)) &&
	       (!filter->after || message->event_time >= filter->after) &&
	       (!filter->before || message->event_time < filter->before) &&
	       (!filter->route || route_match(filter->route, message));
}

static int replay_source_new(struct replay_source **ret_source, struct outbox_error *err)
{
	*ret_source = calloc(1, sizeof(**ret_source));
	return *ret_source ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

int replay_source_archive(const char *path, bool salvage, struct replay_source **ret_source,
			  struct outbox_error *err)
{
	struct replay_source *source;
	int r = replay_source_new(&source, err);

	if (r)
		return r;
	source->salvage = salvage;
	source->path = strdup(path);
	r = source->path ? line_reader_open("archive ", path, &source->reader, err)
			 : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r)
		source = replay_source_free(source);
	else
		*ret_source = source;
	return r;
}

int replay_source_log(struct outbox_store *store, outbox_time now,
		      struct replay_source **ret_source, struct outbox_error *err)
{
	struct replay_source *source;
	int r = replay_source_new(&source, err);

	if (r)
		return r;
	source->store = store;
	source->now = now;
	source->page = outbox_arena_new((size_t)256 << 20);
	if (!source->page) {
		replay_source_free(source);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	*ret_source = source;
	return OUTBOX_OK;
}

struct replay_source *replay_source_free(struct replay_source *source)
{
	if (!source)
		return NULL;
	line_reader_close(source->reader);
	outbox_arena_free(source->page);
	free(source->path);
	free(source);
	return NULL;
}

struct replay_source_state replay_source_state(const struct replay_source *source)
{
	struct replay_source_state state = source->state;

	state.page_end = source->store && source->at == source->n;
	return state;
}

/* Damage ends an archive that is to be salvaged, and is remembered. */
static int next_line(struct replay_source *source, const char **ret_line, size_t *ret_size,
		     struct outbox_error *err)
{
	int r = line_reader_next(source->reader, ret_line, ret_size, &source->damage);

	if (r == OUTBOX_EPROTO && source->salvage) {
		source->state.damage = source->damage.message;
		*ret_line = NULL;
		return OUTBOX_OK;
	}
	if (r)
		outbox_fail_native(err, r, source->damage.native, "%s", source->damage.message);
	return r;
}

static int next_of_archive(struct replay_source *source, struct outbox_arena *arena,
			   struct outbox_claimed *message, bool *ret_end, struct outbox_error *err)
{
	const char *line;
	char shown[200];
	bool malformed = true;
	size_t size;
	int r;

	while (malformed) {
		r = next_line(source, &line, &size, err);
		*ret_end = r == OUTBOX_OK && !line;
		if (r || !line)
			return r;
		source->state.position = line_reader_lines(source->reader);
		r = event_line_read(line, size, arena, message, &malformed, err);
		if (r == OUTBOX_EPROTO && source->salvage) {
			source->state.salvaged++;
			malformed = true;
			continue;
		}
		if (r)
			return outbox_wrap(err, "archive %s, line %lld",
					   text_shown(shown, sizeof(shown), source->path),
					   (long long)source->state.position);
		source->state.malformed += malformed;
	}
	source->state.sequence = message->seq;
	message->seq = source->state.position;
	return OUTBOX_OK;
}

static int next_page(struct replay_source *source, struct outbox_error *err)
{
	struct outbox_purge request = { .delivered_before = source->now, .limit = LOG_PAGE };
	int r;

	do {
		outbox_arena_reset(source->page);
		r = store_purgeable(source->store, &request, source->state.position, source->page,
				    &source->messages, &source->n, err);
		request.limit /= 2; /* large payloads: a smaller page fits */
	} while (r == OUTBOX_ENOMEM && request.limit > 0);
	source->at = 0;
	return r;
}

static int next_of_log(struct replay_source *source, struct outbox_claimed *message, bool *ret_end,
		       struct outbox_error *err)
{
	int r;

	for (;;) {
		r = source->at == source->n ? next_page(source, err) : OUTBOX_OK;
		*ret_end = r == OUTBOX_OK && source->at == source->n;
		if (r || *ret_end)
			return r;
		*message = source->messages[source->at++];
		source->state.position = source->state.sequence = message->seq;
		if (!message->malformed)
			return OUTBOX_OK;
		source->state.malformed++;
	}
}

int replay_source_seek(struct replay_source *source, int64_t position, struct outbox_error *err)
{
	const char *line = "";
	size_t size;
	int r = OUTBOX_OK;

	while (source->reader && r == OUTBOX_OK && line &&
	       line_reader_lines(source->reader) < position)
		r = next_line(source, &line, &size, err);
	source->state.position = position;
	return r;
}

int replay_source_next(struct replay_source *source, struct outbox_arena *arena,
		       struct outbox_claimed *ret_message, bool *ret_end, struct outbox_error *err)
{
	return source->reader ? next_of_archive(source, arena, ret_message, ret_end, err)
			      : next_of_log(source, ret_message, ret_end, err);
}
