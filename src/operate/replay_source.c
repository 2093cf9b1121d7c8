/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/replay_source.h"

#include "base/text.h"
#include "core/routing.h"
#include "operate/archive_reader.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#define LOG_PAGE 200

struct feed {
	struct feed_state state;
	/* an archive */
	struct archive_reader *reader;
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
	       (!filter->route ||
		route_match(filter->route, message->type, message->kind, message->published != 0));
}

static int feed_new(struct feed **ret_feed, struct outbox_error *err)
{
	*ret_feed = calloc(1, sizeof(**ret_feed));
	return *ret_feed ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

int feed_archive(const char *path, bool salvage, struct feed **ret_feed, struct outbox_error *err)
{
	struct feed *feed;
	int r = feed_new(&feed, err);

	if (r)
		return r;
	feed->salvage = salvage;
	feed->path = strdup(path);
	r = feed->path ? archive_open(path, &feed->reader, err)
		       : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r)
		feed = feed_free(feed);
	else
		*ret_feed = feed;
	return r;
}

int feed_log(struct outbox_store *store, outbox_time now, struct feed **ret_feed,
	     struct outbox_error *err)
{
	struct feed *feed;
	int r = feed_new(&feed, err);

	if (r)
		return r;
	feed->store = store;
	feed->now = now;
	feed->page = outbox_arena_new((size_t)256 << 20);
	if (!feed->page) {
		feed_free(feed);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	*ret_feed = feed;
	return OUTBOX_OK;
}

struct feed *feed_free(struct feed *feed)
{
	if (!feed)
		return NULL;
	archive_close(feed->reader);
	outbox_arena_free(feed->page);
	free(feed->path);
	free(feed);
	return NULL;
}

struct feed_state feed_state(const struct feed *feed)
{
	struct feed_state state = feed->state;

	state.page_end = feed->store && feed->at == feed->n;
	return state;
}

/* Damage ends an archive that is to be salvaged, and is remembered. */
static int next_line(struct feed *feed, const char **ret_line, size_t *ret_size,
		     struct outbox_error *err)
{
	int r = archive_next(feed->reader, ret_line, ret_size, &feed->damage);

	if (r == OUTBOX_EPROTO && feed->salvage) {
		feed->state.damage = feed->damage.message;
		*ret_line = NULL;
		return OUTBOX_OK;
	}
	if (r)
		outbox_fail_native(err, r, feed->damage.native, "%s", feed->damage.message);
	return r;
}

static int next_of_archive(struct feed *feed, struct outbox_arena *arena,
			   struct outbox_claimed *message, bool *ret_end, struct outbox_error *err)
{
	const char *line;
	char shown[200];
	bool malformed = true;
	size_t size;
	int r;

	while (malformed) {
		r = next_line(feed, &line, &size, err);
		*ret_end = r == OUTBOX_OK && !line;
		if (r || !line)
			return r;
		feed->state.position = archive_lines(feed->reader);
		r = archive_message(line, size, arena, message, &malformed, err);
		if (r == OUTBOX_EPROTO && feed->salvage) {
			feed->state.salvaged++;
			malformed = true;
			continue;
		}
		if (r)
			return outbox_wrap(err, "archive %s, line %lld",
					   text_shown(shown, sizeof(shown), feed->path),
					   (long long)feed->state.position);
		feed->state.malformed += malformed;
	}
	feed->state.sequence = message->seq;
	message->seq = feed->state.position;
	return OUTBOX_OK;
}

static int next_page(struct feed *feed, struct outbox_error *err)
{
	struct outbox_purge request = { .delivered_before = feed->now, .limit = LOG_PAGE };
	int r;

	do {
		outbox_arena_reset(feed->page);
		r = store_purgeable(feed->store, &request, feed->state.position, feed->page,
				    &feed->messages, &feed->n, err);
		request.limit /= 2; /* large payloads: a smaller page fits */
	} while (r == OUTBOX_ENOMEM && request.limit > 0);
	feed->at = 0;
	return r;
}

static int next_of_log(struct feed *feed, struct outbox_claimed *message, bool *ret_end,
		       struct outbox_error *err)
{
	int r;

	for (;;) {
		r = feed->at == feed->n ? next_page(feed, err) : OUTBOX_OK;
		*ret_end = r == OUTBOX_OK && feed->at == feed->n;
		if (r || *ret_end)
			return r;
		*message = feed->messages[feed->at++];
		feed->state.position = feed->state.sequence = message->seq;
		if (!message->malformed)
			return OUTBOX_OK;
		feed->state.malformed++;
	}
}

int feed_seek(struct feed *feed, int64_t position, struct outbox_error *err)
{
	const char *line = "";
	size_t size;
	int r = OUTBOX_OK;

	while (feed->reader && r == OUTBOX_OK && line && archive_lines(feed->reader) < position)
		r = next_line(feed, &line, &size, err);
	feed->state.position = position;
	return r;
}

int feed_next(struct feed *feed, struct outbox_arena *arena, struct outbox_claimed *ret_message,
	      bool *ret_end, struct outbox_error *err)
{
	return feed->reader ? next_of_archive(feed, arena, ret_message, ret_end, err)
			    : next_of_log(feed, ret_message, ret_end, err);
}
