/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_PLAN_H
#define RELAY_PLAN_H

/* A relay's configuration after it was checked: every default filled in, every string our own. */

#include "base/log.h"
#include "base/random.h"
#include "relay/throttle.h"

#include <outbox/relay.h>

struct target_plan {
	const char *name;
	const char *to;
	int envelope;
	const char *const *headers; /* external: these leave, too */
	size_t n_headers;
	int order;
	bool hold;
	size_t max_size; /* of a payload; 0: any */
	bool paused;     /* when it is new */
	int start;
	outbox_time start_time;
	const char *dead_letter; /* NULL: none */
	struct outbox_route route;
	struct outbox_policy policy;
	size_t batch_messages;
	outbox_time lease, publish_timeout, poll_min, poll_max;
	int64_t route_version; /* from the store, when the target is registered */
	bool unstarted;        /* not registered: it is new, and does not say where it starts */
	bool running;          /* the relay that this one replaces runs it */
	const char *band_of;   /* the target that was configured with bands; NULL: none */
	enum throttle_rank rank;
	struct throttle *throttle; /* shared by the bands of a target; never NULL */
};

struct relay_plan {
	const char *store;
	const char *store_option; /* for commands that are suggested; "": nothing */
	const char *instance;
	struct target_plan *targets;
	size_t n_targets;
	int workers; /* per target */
	size_t batch_bytes;
	outbox_time breaker_min, breaker_max;
	outbox_time retain_delivered, retain_failed; /* OUTBOX_NEVER: keep */
	outbox_time retain_inbox;                    /* likewise */
	outbox_time purge_interval;                  /* OUTBOX_NEVER: no purge */
	const char *archive;                         /* a folder; NULL: nothing is archived */
	const struct outbox_registry *registry;
	struct outbox_clock *clock;
	uint64_t seed;
	bool no_wakeup; /* poll only */
	bool replay;    /* the store is a replay's spool */
	struct log log;
};

/* ECONFIG names the target, the field and the remedy. Strings are copied into the arena. */
int plan_make(const struct outbox_relay_config *given, struct outbox_arena *arena,
	      struct relay_plan *ret_plan, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* How many targets one that is configured may become: one for each band, its messages by priority class. */
#define BANDS_EACH 3

/* One more target of the leader's family, behind all others, for which there is room; it takes these bands. */
int plan_add_band(struct relay_plan *plan, size_t leader, unsigned band, unsigned takes,
		  struct outbox_arena *arena, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The target of this name; NULL: none, or no name. */
struct target_plan *plan_find(const struct relay_plan *plan, const char *name);

/* A store connection of the caller's own. random must outlive it. */
int plan_open_store(const struct relay_plan *plan, struct random_state *random,
		    struct outbox_store **ret_store, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
