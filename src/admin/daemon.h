/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_DAEMON_H
#define ADMIN_DAEMON_H

/*
 * The process that runs for years: a supervised relay for each source of a configuration. A source that cannot be
 * reached is tried again and stops no other. A new configuration is checked as a whole before anything is swapped.
 * All functions may be called from any thread.
 */

#include "config/config.h"
#include "relay/metrics.h"

struct daemon;

enum source_state { SOURCE_STARTING = 1, SOURCE_RUNNING, SOURCE_DRAINING, SOURCE_STOPPED };

/* A source as it is at this moment. */
struct daemon_source {
	const char *name;
	char store[300]; /* the URL without its secrets */
	enum source_state state;
	const char *trouble; /* why it does not run; NULL: it does */
	outbox_time trouble_since;
	size_t n_targets;
	const struct target_metrics *targets; /* of this process; empty until it runs */
};

/* All sources, in the order of the file; from the arena. */
int daemon_sources(struct daemon *daemon, struct outbox_arena *arena,
		   const struct daemon_source **ret_sources, size_t *ret_count,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * A store connection of the caller's own, for one thread: closed with daemon_close_store(). source NULL: the
 * only one there is. ENOTFOUND lists the names there are.
 */
struct daemon_store;
int daemon_open_store(struct daemon *daemon, const char *source, struct daemon_store **ret_store,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
struct outbox_store *daemon_store_of(struct daemon_store *store);
struct daemon_store *daemon_close_store(struct daemon_store *store);

/* What the configuration says now, held until it is given back; a reload meanwhile makes a new one. */
const struct config *daemon_config(struct daemon *daemon);
void daemon_config_done(struct daemon *daemon, const struct config *config);

struct daemon_reloaded {
	size_t kept, changed, added, removed; /* sources */
	char restart[300]; /* keys that changed and take effect with the next start only; "": none */
};

/* Read the file again. Wrong in any way: nothing changes, problems says why. dry_run: only look. */
int daemon_reload(struct daemon *daemon, bool dry_run, struct problems *problems,
		  struct daemon_reloaded *ret_reloaded, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Stop claiming, finish, settle, release; the process then ends, as after SIGTERM. */
void daemon_drain(struct daemon *daemon);
bool daemon_draining(struct daemon *daemon);

#endif
