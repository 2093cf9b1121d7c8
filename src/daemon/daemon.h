/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

/*
 * The process that runs for years: a supervised relay for each source of a configuration. A source that cannot be
 * reached is tried again and stops no other. A new configuration is checked as a whole before anything is swapped.
 * All functions may be called from any thread.
 */

#include "config/config.h"
#include "daemon/setup.h"
#include "operate/sample.h"

struct daemon;

/*
 * config is taken over, also on failure; its sources are those to run. setup is copied, its texts must outlive the
 * daemon.
 */
int daemon_new(const struct daemon_setup *setup, struct config *config, struct daemon **ret_daemon,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Before start(). */
void daemon_observe(struct daemon *daemon, daemon_observer observer, void *context);

/* Be called after every reload that changed the configuration. NULL: no more; then no call is under way either. */
void daemon_follow(struct daemon *daemon, void (*reloaded)(void *context), void *context);

/* The configuration file; NULL: options. */
const char *daemon_file(const struct daemon *daemon);
enum daemon_mode daemon_mode(const struct daemon *daemon);

/*
 * A thread for each source; returns at once. One that ends by itself (ONCE, UNTIL_IDLE) is not for those that are away:
 * its stores are looked at first, and what is wrong with one is the error. What fails later stops no other source.
 */
int daemon_start(struct daemon *daemon, struct outbox_error *err) OUTBOX_MUSTCHECK;

enum daemon_phase {
	DAEMON_STARTING = 1, /* some source was not tried yet */
	DAEMON_READY,        /* each one runs, or its trouble was reported */
	DAEMON_DRAINING,
	DAEMON_DONE /* every source has ended */
};
enum daemon_phase daemon_phase(struct daemon *daemon);

/* One line for people: "2 of 3 sources run; other: no such file". */
void daemon_describe(struct daemon *daemon, char *out, size_t size);

/* Does every thread move, or wait for something it may wait for? patience: for one call of store or broker. */
bool daemon_alive(struct daemon *daemon, outbox_time patience);

/* Drain, wait for the end, join. EINVAL, ECONFIG: a source could not be started at all; ETIMEDOUT: batches were abandoned. */
int daemon_stop(struct daemon *daemon, struct outbox_error *err);

/* Of all sources, also of relays that a reload replaced. False: no relay was ever started. */
bool daemon_counts(struct daemon *daemon, struct outbox_relay_counts *ret_counts);
void daemon_in_flight(struct daemon *daemon, size_t *ret_batches, size_t *ret_messages);

/* Stops first. NULL is legal; returns NULL. */
struct daemon *daemon_free(struct daemon *daemon);

/* All sources, in the order of the file; from the arena. */
int daemon_sources(struct daemon *daemon, struct outbox_arena *arena,
		   const struct daemon_source **ret_sources, size_t *ret_count,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * A store connection of the caller's own, for one thread: closed with daemon_close_store(). source NULL: the
 * only one there is. ENOTFOUND and EINVAL list the names there are.
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

/* Was the last reload refused, by the file's check or by a store? Then the process would not start again as it runs now. */
bool daemon_reload_refused(struct daemon *daemon);

/* Stop claiming, finish, settle, release; the process then ends, as after SIGTERM. */
void daemon_drain(struct daemon *daemon);
bool daemon_draining(struct daemon *daemon);

#endif
