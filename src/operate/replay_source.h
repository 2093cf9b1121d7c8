/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_REPLAY_SOURCE_H
#define OPERATE_REPLAY_SOURCE_H

/* Messages of the past, from an archive or from the retained log, and which of them are meant. */

#include <outbox/relay.h>
#include <outbox/store.h>

struct replay_filter {
	const char *type, *key;           /* glob; exact; NULL: any */
	outbox_time after, before;        /* event time; 0: any */
	const struct outbox_route *route; /* what the target takes; NULL: anything */
};

bool replay_wanted(const struct replay_filter *filter, const struct outbox_message *message);

/*
 * A way through the past, oldest first. Positions are lines of the archive or seqs of the log: after a
 * restart replay_source_seek() goes on after one.
 */
struct replay_source;

/* salvage: lines that make no sense are passed over, and where the file is damaged it ends. */
int replay_source_archive(const char *path, bool salvage, struct replay_source **ret_source,
			  struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Messages that every target is done with, up to now. Borrows the store. */
int replay_source_log(struct outbox_store *store, outbox_time now,
		      struct replay_source **ret_source, struct outbox_error *err) OUTBOX_MUSTCHECK;
struct replay_source *replay_source_free(struct replay_source *source);

int replay_source_seek(struct replay_source *source, int64_t position,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The next message, from the arena; *ret_end: there are no more. */
int replay_source_next(struct replay_source *source, struct outbox_arena *arena,
		       struct outbox_claimed *ret_message, bool *ret_end,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

struct replay_source_state {
	int64_t position;
	int64_t sequence;   /* the last message's own place in its log; 0: not known */
	int64_t malformed;  /* passed over: never were messages that anybody could deliver */
	int64_t salvaged;   /* lines passed over since they make no sense */
	const char *damage; /* where the file was given up; NULL: it was not */
	bool page_end;      /* what was given so far goes with the next call: use it before */
};
struct replay_source_state replay_source_state(const struct replay_source *source);

#endif
