/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_RELAY_H
#define OUTBOX_RELAY_H

/*
 * The relay inside your process: the same engine as the daemon's. All functions may be called from
 * any thread; a relay does not survive fork().
 */

#include <outbox/clock.h>
#include <outbox/error.h>
#include <outbox/log.h>
#include <outbox/message.h>
#include <outbox/store.h>
#include <outbox/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

struct outbox_relay;
struct outbox_registry;

/* ---- drivers of your own ------------------------------------------------------------------- */

/* A registry knows the built-in drivers and those you add; yours go first. */
int outbox_registry_new(struct outbox_registry **ret_registry, struct outbox_error *err);
struct outbox_registry *outbox_registry_free(struct outbox_registry *registry);

/* ops (and context) must outlive the registry. The error names a mandatory op that is missing. */
int outbox_registry_add_transport(struct outbox_registry *registry,
				  const struct outbox_transport_ops *ops, void *context,
				  struct outbox_error *err) OUTBOX_MUSTCHECK;
int outbox_registry_add_store(struct outbox_registry *registry, const struct outbox_store_ops *ops,
			      void *context, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * In-process handlers, for targets with the URL "handler:". 0 acknowledges; anything else is a
 * failed try with the text in err. Type "*" takes what no other handler takes; without it an
 * unknown type fails at once with "unknown event type". A handler must return before the publish
 * timeout (default 10 s): it cannot be interrupted.
 */
typedef int (*outbox_handler)(void *context, const struct outbox_item *item,
			      struct outbox_error *err);
int outbox_registry_handle(struct outbox_registry *registry, const char *type,
			   outbox_handler handler, void *context,
			   struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Several handlers for one type: each table of handlers has a name ([a-z0-9_-], starts with a letter) and a
 * target of its own, with the URL "handler:NAME". So each has its own deliveries, retries and order, and one that
 * fails holds up no other. A table's "*" is its own, too. name NULL: the table of "handler:".
 */
int outbox_registry_handle_as(struct outbox_registry *registry, const char *name, const char *type,
			      outbox_handler handler, void *context,
			      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- retry policies ------------------------------------------------------------------------ */

#define OUTBOX_SCHEDULE_MAX 32

struct outbox_policy {
	size_t struct_size;
	const char *name;
	int max_attempts;   /* total tries, the first one included, before it fails. 0: no limit */
	outbox_time budget; /* from the first failure on; 0: no limit */
	/* Either a schedule: the delay before attempt 2, 3, ...; used up means failed ... */
	size_t n_schedule;
	outbox_time schedule[OUTBOX_SCHEDULE_MAX];
	/* ... or exponential: base * factor^k, at most cap. jitter moves each delay by up to that
	 * percentage up or down. */
	outbox_time base, cap;
	double factor;
	int jitter_percent;
	/* What else the preset's system sets; 0: our default. */
	outbox_time poll, lease, retain_delivered, retain_failed, purge_interval;
	size_t batch;
};

/* "default", "hermodr", "blueprint", "protean", "opinionated". NULL when there is none. */
const struct outbox_policy *outbox_policy_find(const char *name);
/* The i-th preset, NULL after the last. */
const struct outbox_policy *outbox_policy_at(size_t i);

/* ---- the relay ----------------------------------------------------------------------------- */

enum outbox_order {
	OUTBOX_ORDER_UNSET = 0,     /* strict */
	OUTBOX_ORDER_STRICT = 1,    /* sent when the previous one of its key is confirmed */
	OUTBOX_ORDER_PIPELINED = 2, /* a key's messages are sent together; a failure may reorder */
	OUTBOX_ORDER_NONE = 3       /* keys have no effect: nothing is ever parked */
};

struct outbox_target_config {
	size_t struct_size;
	const char *name;
	const char *to; /* "file:out.jsonl" */
	int envelope;   /* enum outbox_envelope */
	int order;      /* enum outbox_order */
	bool hold;      /* later messages of a key wait after a failed one */
	int start;      /* enum outbox_start */
	struct outbox_route route;
	const struct outbox_policy *policy; /* NULL: default */
	/*
	 * Three targets instead of one, by priority: NAME-high, NAME, NAME-low, each with its own lanes, workers
	 * and breaker, so that low-priority bulk messages do not delay others. Order is then per key and band.
	 */
	bool bands;
	/*
	 * This process sends at most rate_count messages in rate_period, all bands together; 0: no limit. burst:
	 * how many may be sent at once after a pause; 0: what the rate allows in a second, at least 1.
	 */
	int64_t rate_count;
	outbox_time rate_period;
	int64_t rate_burst;
	outbox_time start_time; /* of OUTBOX_START_TIME */
	/* The target that gets what fails here, with the reason in headers outbox-dead-*; NULL: none. It must
	 * be registered or one of these, must not be external, and must not lead back. */
	const char *dead_letter;
	/* With OUTBOX_ENVELOPE_EXTERNAL: the only headers that are sent ("traceparent" includes the field of that name). */
	const char *const *headers;
	size_t n_headers;
	/* A message whose payload has more bytes fails at once, before it is sent; 0: no limit. The envelope and the headers
	 * come on top of it. */
	size_t max_size;
	bool paused; /* only looked at when the target is new: it is registered paused, until somebody resumes it */
};

#define OUTBOX_TARGET_CONFIG_INIT OUTBOX_SIZED(struct outbox_target_config)

struct outbox_relay_config {
	size_t struct_size;
	const char *store; /* URL */
	const struct outbox_target_config *targets;
	size_t n_targets;
	int workers;          /* threads per target; 0: 1 */
	const char *instance; /* shown in status and logs; a random suffix makes it unique. NULL: host:pid */
	size_t batch_messages; /* 0: 500 */
	size_t batch_bytes;    /* 0: 8 MiB */
	outbox_time lease;     /* 0: 15 s */
	outbox_time publish_timeout; /* 0: 2/3 of the lease, at most 10 s; must be shorter than the lease */
	outbox_time poll_min, poll_max;       /* 0: 4 ms, 250 ms */
	outbox_time breaker_min, breaker_max; /* 0: 500 ms, 30 s */
	/* Retention by the relay. 0: 7 days; OUTBOX_NEVER: keep. Failed ones: 0 keeps them forever. */
	outbox_time retain_delivered, retain_failed;
	outbox_time purge_interval; /* 0: 1 min; OUTBOX_NEVER: the relay does not purge */
	const struct outbox_registry *registry; /* NULL: built-in drivers only; outlives the relay */
	struct outbox_clock *clock;             /* NULL: the system's */
	uint64_t seed;                          /* of jitter and tokens; 0: from the system */
	outbox_log_fn log;                      /* NULL: silent */
	void *log_context;
	/* How commands that the log suggests name the store: "--config outbox.yaml --source shop". NULL: they do not. */
	const char *store_option;
	/* A folder: what retention removes is first written there, as by outbox archive. NULL: nowhere */
	const char *archive;
	/* Ids in the inbox beside the outbox (outbox/inbox.h), where there is one. 0: 30 days; OUTBOX_NEVER: keep. Pruned as
	 * often as messages are purged. */
	outbox_time retain_inbox;
};

#define OUTBOX_RELAY_CONFIG_INIT OUTBOX_SIZED(struct outbox_relay_config)

/* Counted since the relay was made, over all its targets. */
struct outbox_relay_counts {
	size_t struct_size;
	uint64_t delivered, failed, retried, parked, deferred, returned, batches;
	uint64_t outages;             /* how often a breaker opened */
	uint64_t takeovers;           /* lanes taken from an owner with messages in flight */
	uint64_t fenced;              /* settlements that had no effect */
	uint64_t unknown;             /* verdicts UNKNOWN: each may become a duplicate */
	uint64_t possible_duplicates; /* messages in flight when fenced or taken over */
	uint64_t duplicates; /* acknowledged as already there: the broker recognised them */
};

#define OUTBOX_RELAY_COUNTS_INIT OUTBOX_SIZED(struct outbox_relay_counts)

/* Checks the whole configuration and registers the targets in the store; starts nothing. */
int outbox_relay_new(struct outbox_relay **ret_relay, const struct outbox_relay_config *config,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Start the workers' threads and return. */
int outbox_relay_start(struct outbox_relay *relay, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Stop reading, finish the batches in flight within timeout, settle what was acknowledged, release
 * the lanes, join. ETIMEDOUT: some batch was abandoned; its messages are sent again by the relay that
 * takes over the lane. Safe to call twice. In a child after fork() it is EINVAL: the relay runs in the parent.
 */
int outbox_relay_stop(struct outbox_relay *relay, outbox_time timeout, struct outbox_error *err);

/* Deliver what is due now, then return. As often as you like, but not together with start(). */
int outbox_relay_run_once(struct outbox_relay *relay, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Deliver until nothing is left but deferred, failed and discarded deliveries, and those that do not
 * move by themselves (paused, or held behind a failed one); waits for retries.
 * stop (may be NULL) is polled: not 0 ends it early. */
int outbox_relay_run_until_idle(struct outbox_relay *relay, const volatile int *stop,
				struct outbox_error *err) OUTBOX_MUSTCHECK;

/* NULL is allowed, here and below: nothing is returned, or all is 0. */
void outbox_relay_counts(const struct outbox_relay *relay, struct outbox_relay_counts *ret_counts);

/* Batches and messages in flight right now: for "finishing 1 batch (412 messages)". */
void outbox_relay_in_flight(const struct outbox_relay *relay, size_t *ret_batches,
			    size_t *ret_messages);

/* Stops the relay first if it still runs. NULL is allowed. In a child after fork() nothing is freed. */
struct outbox_relay *outbox_relay_free(struct outbox_relay *relay);

/* ---- monitor ------------------------------------------------------------------------------- */

/* Read a store's state: per target pending, waiting, parked, failed, oldest. Opens and closes. */
int outbox_monitor(const char *store_url, const struct outbox_registry *registry,
		   struct outbox_arena *arena, struct outbox_stats *ret_stats,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

#ifdef __cplusplus
}
#endif

#endif
