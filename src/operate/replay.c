/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replay is a small outbox: messages are read a window at a time into a spool, a SQLite store, and the same
 * relay delivers them from there, with the target's own envelope, order, retries, breaker and rate. So a
 * replay keeps every promise that a delivery keeps, and what fails can be looked at and requeued there.
 *
 * Read, appended, noted, delivered, cleaned: in this order. A crash before the note reads the same window again,
 * whose ids are still in the spool and therefore appended once; a crash after it goes on behind. Ids and event
 * times are the messages' own. Due and expiry times are not: whoever replays means now.
 */
#include "operate/replay.h"

#include "base/text.h"
#include "relay/outgoing.h"
#include "relay/relay.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BATCH 500
#define BATCH_BYTES ((size_t)8 << 20)
#define WINDOW 20000
#define WINDOW_BYTES ((size_t)256 << 20)
#define REPLAY_MARK_MAX (TIME_TEXT_MAX + 24)

/* The message as it goes out, marked. Headers come from the arena. */
static int prepare(const struct replay *replay, const struct outbox_claimed *found, char *stamp,
		   struct outbox_message *ret_message, struct outbox_error *err)
{
	struct outbox_message message = found->message;
	struct outbox_header *headers =
		outbox_arena_alloc(replay->arena, (message.n_headers + 1) * sizeof(*headers));
	char *mark = outbox_arena_alloc(replay->arena, REPLAY_MARK_MAX);
	struct outbox_error why = OUTBOX_ERROR_INIT;
	size_t n = 0;
	int r;

	if (!headers || !mark)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	snprintf(mark, REPLAY_MARK_MAX, "%s %lld", stamp,
		 (long long)replay_source_state(replay->source).sequence);
	for (size_t i = 0; i < message.n_headers; i++)
		if (strcasecmp(message.headers[i].name, REPLAY_HEADER) != 0)
			headers[n++] = message.headers[i];
	if (n < OUTBOX_HEADERS_MAX)
		headers[n++] = (struct outbox_header){ REPLAY_HEADER, mark };
	message.headers = headers;
	message.n_headers = n;
	message.due_at = message.expires_at = 0;
	r = outbox_message_validate(&message, 0, &why);
	if (r)
		return outbox_fail(err, OUTBOX_EPROTO, "%s %lld: %s",
				   replay->from_log ? "seq" : "line", (long long)found->seq,
				   why.message);
	*ret_message = message;
	return OUTBOX_OK;
}

static void note_time(struct replay *replay, outbox_time time)
{
	if (!replay->oldest || time < replay->oldest)
		replay->oldest = time;
	if (time > replay->newest)
		replay->newest = time;
}

int replay_scan(struct replay *replay, struct outbox_error *err)
{
	char stamp[TIME_TEXT_MAX];
	struct outbox_message message;
	struct outbox_claimed found;
	bool end = false;
	int r = OUTBOX_OK;

	time_format(replay->began, stamp);
	while (r == OUTBOX_OK && !end) {
		outbox_arena_reset(replay->arena);
		found = (struct outbox_claimed){ 0 };
		r = replay_source_next(replay->source, replay->arena, &found, &end, err);
		if (r || end || !replay_wanted(&replay->filter, &found.message))
			continue;
		r = prepare(replay, &found, stamp, &message, err);
		if (r == OUTBOX_EPROTO && replay->salvage) {
			replay->unfit++;
			r = OUTBOX_OK;
			continue;
		}
		replay->wanted++;
		note_time(replay, found.message.event_time);
	}
	return r;
}

/* One transaction's worth into the spool. */
static int fill_batch(struct replay *replay, size_t *bytes, bool *ret_end, struct outbox_error *err)
{
	struct outbox_message messages[BATCH];
	struct outbox_store *store = replay->spool->store;
	char stamp[TIME_TEXT_MAX];
	size_t n = 0, here = 0;
	int r = OUTBOX_OK;

	outbox_arena_reset(replay->arena);
	time_format(replay->spool->began, stamp);
	while (n < BATCH && here < BATCH_BYTES) {
		struct outbox_claimed found = { 0 };

		r = replay_source_next(replay->source, replay->arena, &found, ret_end, err);
		if (r || *ret_end)
			break;
		if (replay_wanted(&replay->filter, &found.message)) {
			r = prepare(replay, &found, stamp, &messages[n], err);
			here += found.message.size;
			n += r == OUTBOX_OK;
			if (r == OUTBOX_EPROTO && replay->salvage)
				r = OUTBOX_OK; /* counted by the scan */
		}
		if (r || replay_source_state(replay->source).page_end)
			break;
	}
	if (r == OUTBOX_OK && n)
		r = store_append(store, messages, n, NULL, NULL, err);
	replay->spool->count += (int64_t)n;
	*bytes += here;
	return r;
}

/* With a rate, a window is a few seconds' worth, so that people see it move. */
static int64_t window_size(const struct replay *replay)
{
	const struct outbox_target_config *target = &replay->target;
	int64_t size = WINDOW;

	if (target->rate_count > 0 && target->rate_period > 0)
		size = (int64_t)((double)target->rate_count * 5 * (double)OUTBOX_SECONDS /
				 (double)target->rate_period);
	return size < BATCH ? BATCH : size > WINDOW ? WINDOW : size;
}

static int fill_window(struct replay *replay, bool *ret_end, struct outbox_error *err)
{
	struct spool *spool = replay->spool;
	int64_t full = spool->count + window_size(replay);
	size_t bytes = 0;
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK && !*ret_end && spool->count < full && bytes < WINDOW_BYTES)
		r = fill_batch(replay, &bytes, ret_end, err);
	if (r)
		return r;
	spool->position = replay_source_state(replay->source).position;
	return spool_note(spool, err);
}

static int deliver_window(struct replay *replay, struct outbox_error *err)
{
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct outbox_relay *relay = NULL;
	int r;

	config.store = replay->spool->url;
	config.targets = &replay->target;
	config.n_targets = 1;
	config.purge_interval = OUTBOX_NEVER;
	config.log = replay->log;
	r = outbox_relay_new(&relay, &config, err);
	if (r)
		return r;
	relay_set_replay(relay);
	r = replay->run(replay->context, relay, &replay->ended, err);
	outbox_relay_counts(relay, &counts);
	relay_counts_add(&replay->counts, &counts);
	outbox_relay_free(relay);
	return r;
}

static int count_left(struct replay *replay, struct outbox_error *err)
{
	struct outbox_store *store = replay->spool->store;
	struct outbox_stats stats;
	int r;

	outbox_arena_reset(replay->arena);
	r = store_stats(store, replay->arena, &stats, err);
	replay->left = 0;
	for (size_t i = 0; r == OUTBOX_OK && i < stats.n_targets; i++) {
		const struct outbox_target_stats *t = &stats.targets[i];

		replay->left +=
			t->pending + t->sending + t->waiting + t->deferred + t->parked + t->failed;
	}
	return r;
}

int replay_deliver(struct replay *replay, const struct bulk *bulk, struct outbox_error *err)
{
	bool end = false;
	int r = replay_source_seek(replay->source, replay->spool->position, err);

	while (r == OUTBOX_OK && !end && !replay->ended) {
		r = fill_window(replay, &end, err);
		if (r == OUTBOX_OK)
			r = deliver_window(replay, err);
		if (r == OUTBOX_OK)
			r = spool_clean(replay->spool, replay->clock->wall(replay->clock), err);
		bulk_progress(bulk, replay->spool->count);
	}
	return r ? r : count_left(replay, err);
}
