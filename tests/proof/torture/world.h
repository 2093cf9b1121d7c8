/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_WORLD_H
#define TORTURE_WORLD_H

/*
 * A database for one run: copied from the case's template, so that every run starts from the same bytes.
 * All that a call says becomes text, and so does all that the database holds (picture.h): two runs agree
 * when their texts do.
 */

#include "base/random.h"
#include "frozen_clock.h"

#include <outbox/store.h>

#include <sqlite3.h>

#define WORLD_START ((outbox_time)1700000000 * OUTBOX_SECONDS)
#define WORLD_MESSAGES 16
#define WORLD_FDS 16

struct world {
	char folder[64], file[96], url[128];
	struct frozen_clock clock;
	struct random_state random;
	struct outbox_store *store;
	struct outbox_arena *arena;
	sqlite3 *app; /* the application's own connection */
	int fds[WORLD_FDS];
	size_t n_fds;
	/* The lane as the case's preparation left it. */
	int64_t n, token;
	int64_t seqs[WORLD_MESSAGES];
	size_t n_seqs;
	char said[131072]; /* what the call gave back */
	size_t n_said;
};

void world_begin(struct world *w);
void world_end(struct world *w);

/* The database becomes these bytes; NULL: there is none. */
struct bytes {
	char *data;
	size_t size;
};
void world_load(struct world *w, const struct bytes *bytes);
void world_save(struct world *w, struct bytes *ret_bytes);

/* Plain calls of the store that must not fail. */
void world_open(struct world *w);
void world_close(struct world *w);
int world_try_open(struct world *w, struct outbox_error *err) OUTBOX_MUSTCHECK;
sqlite3 *world_connect(const struct world *w);

/* Closing a descriptor of ours drops SQLite's locks on that file: done when no connection is there. */
void world_close_later(struct world *w, int fd);

void world_say(struct world *w, const char *format, ...) OUTBOX_PRINTF(2, 3);
void world_say_message(struct world *w, const struct outbox_claimed *claimed);

#endif
