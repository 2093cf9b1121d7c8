/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_ADMIN_H
#define OUTBOX_ADMIN_H

/*
 * Operating an outbox from inside an application: what the command line does, for the store that an embedded
 * relay works on or for any other. docs/embedding.md shows it beside a relay.
 *
 * An outbox_admin holds one connection. It connects at the first call that needs it, and again when the
 * connection was lost meanwhile. All functions may be called from any thread; calls on one object wait for each
 * other, so give long ones (a purge, an act on many deliveries) an object of their own. It does not survive fork().
 *
 * Whatever changes something leaves an audit row with the actor in the same transaction. Texts and lists that
 * come back are the arena's. Calls other than info, init and upgrade are ESCHEMA where there is no outbox, or an
 * older one: the text says what to do. Times are the store's: stats.store_now says what it has now.
 */

#include <outbox/arena.h>
#include <outbox/clock.h>
#include <outbox/delivery.h>
#include <outbox/error.h>
#include <outbox/relay.h>
#include <outbox/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct outbox_admin;

/* ---- opening ------------------------------------------------------------------------------- */

/* When health() finds something; 0 is the default in brackets. docs/alerts.md explains each rule. */
struct outbox_health_limits {
	size_t struct_size;
	int64_t failed;      /* more failed deliveries than this [0] */
	outbox_time overdue; /* an unfinished delivery older than this [15 min] */
	int64_t backlog;     /* more unfinished deliveries than this [10,000] */
	int64_t pending;     /* more unread messages than this [1,000] */
	int64_t retry_rate;  /* more per cent of refused tries in the last minute than this [10] */
	const char *const *off; /* globs of rules that are switched off: "retry_rate", "no_*" */
	size_t n_off;
};

#define OUTBOX_HEALTH_LIMITS_INIT OUTBOX_SIZED(struct outbox_health_limits)

struct outbox_admin_config {
	size_t struct_size;
	const char *store;                      /* URL, as of the relay */
	const struct outbox_registry *registry; /* NULL: built-in drivers only; outlives the admin */
	const char *actor; /* who acts, for the audit. NULL: the user and the host */
	const char *name;  /* the label "source" of metrics. NULL: the store's short name */
	struct outbox_clock *clock;                /* NULL: the system's; outlives the admin */
	const struct outbox_health_limits *limits; /* NULL: the defaults */
};

#define OUTBOX_ADMIN_CONFIG_INIT OUTBOX_SIZED(struct outbox_admin_config)

/* Checks the configuration, all of which is copied; connects to nothing yet. */
int outbox_admin_new(struct outbox_admin **ret_admin, const struct outbox_admin_config *config,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;
/* NULL is legal; returns NULL. */
struct outbox_admin *outbox_admin_free(struct outbox_admin *admin);

/* ---- the schema ---------------------------------------------------------------------------- */

/* Driver, name, lanes and schema version; 0: there is no outbox here. ENOTFOUND: there is no database. */
int outbox_admin_info(struct outbox_admin *admin, struct outbox_store_info *ret_info,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Create an outbox; if there is one, nothing changes, so a program may call it at every start. A SQLite file is
 * created, a PostgreSQL database must exist. options NULL: the defaults. ESCHEMA: it is older (upgrade) or newer. */
int outbox_admin_init(struct outbox_admin *admin, const struct outbox_init_options *options,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Upgrade an older one to this library's version; with options->dry_run only say which version it has. ret_from (may be
 * NULL): the version found. Relays of the previous version keep working. */
int outbox_admin_upgrade(struct outbox_admin *admin, const struct outbox_init_options *options,
			 int *ret_from, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- looking ------------------------------------------------------------------------------- */

/* Deliveries, a page of at most filter->limit; the page's cursor in the filter gives the next one. NULL: all. */
int outbox_admin_list(struct outbox_admin *admin, const struct outbox_filter *filter,
		      struct outbox_arena *arena, struct outbox_page *ret_page,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* One message by id, with its payload; its deliveries: list() with that id. ENOTFOUND. */
int outbox_admin_get(struct outbox_admin *admin, const char *id, struct outbox_arena *arena,
		     struct outbox_claimed *ret_message, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Keys whose messages wait, and the delivery that is in the way, the oldest first: a page of at most filter->limit. NULL:
 * all targets. ENOTFOUND names the targets there are. */
int outbox_admin_keys(struct outbox_admin *admin, const struct outbox_keys_filter *filter,
		      struct outbox_arena *arena, struct outbox_keys_page *ret_page,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What operators did with a message (NULL: with any), the newest first, at most limit (0: 100). */
int outbox_admin_audit(struct outbox_admin *admin, const char *id, size_t limit,
		       struct outbox_arena *arena, struct outbox_audit **ret_rows,
		       size_t *ret_count, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Counts, ages and lanes of every target. */
int outbox_admin_stats(struct outbox_admin *admin, struct outbox_arena *arena,
		       struct outbox_stats *ret_stats, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- acting on deliveries ------------------------------------------------------------------ */

/*
 * Which deliveries: by ids (with the target, where there are several), or by state, why, target, type, key and times;
 * an empty filter is EINVAL. By ids, one that is not there is ENOTFOUND before anything changes; one whose state does
 * not allow it is counted as refused, and ECONFLICT when none allows it. By filter with limit 0 all of them, in short
 * transactions of 1,000, so that no relay is kept waiting; what is published or fails meanwhile is left out. With a
 * limit (at most 1,000) that many in this call; while ret->more, call again with ret->cursor in the filter.
 */

/* failed -> pending, due now, attempts 0. filter->state may be left out. reason may be NULL. */
int outbox_admin_requeue(struct outbox_admin *admin, const struct outbox_filter *filter,
			 const char *reason, struct outbox_acted *ret_acted,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* pending, failed -> discarded: they are not sent any more. A filter must say which state; the reason is required. */
int outbox_admin_discard(struct outbox_admin *admin, const struct outbox_filter *filter,
			 const char *reason, struct outbox_acted *ret_acted,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* pending -> not before `until`, which must not be in the past, outside the order of its key. filter->state may be left
 * out. reason may be NULL. */
int outbox_admin_defer(struct outbox_admin *admin, const struct outbox_filter *filter,
		       outbox_time until, const char *reason, struct outbox_acted *ret_acted,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* How many an act (enum outbox_action) would change, all of them in one call; changes nothing. */
int outbox_admin_count(struct outbox_admin *admin, int action, const struct outbox_filter *filter,
		       struct outbox_acted *ret_acted, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- targets and retention ----------------------------------------------------------------- */

/* Nothing more is sent to the target, except the batch in flight, until resume(); its messages wait in the log. The same
 * state again changes nothing. pause() requires a reason. ENOTFOUND names the targets there are. */
int outbox_admin_pause(struct outbox_admin *admin, const char *target, const char *reason,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;
int outbox_admin_resume(struct outbox_admin *admin, const char *target, const char *reason,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Remove finished messages now, before the relay's retention does. With limit 0 all of them, in short
 * transactions; otherwise at most that many. actor NULL: the admin's. One of the two ages is required. */
int outbox_admin_purge(struct outbox_admin *admin, const struct outbox_purge *purge,
		       struct outbox_purged *ret_purged, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* How many messages that would be, in ret->messages; changes nothing. It reads them all, with their payloads. */
int outbox_admin_purgeable(struct outbox_admin *admin, const struct outbox_purge *purge,
			   struct outbox_purged *ret_purged,
			   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Permanently remove the personal data from one message: see struct outbox_redact. ret_done (may be NULL): false, it was
 * redacted before. ENOTSUP: this store cannot. */
int outbox_admin_redact(struct outbox_admin *admin, const char *id, const char *reason,
			bool *ret_done, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Cancel a scheduled message before it is due: see struct outbox_cancel. ret_done (may be NULL): false, it was cancelled
 * before. ENOTSUP: this store cannot. In a transaction of your own: outbox_cancel_pg(), outbox_cancel_sqlite(). */
int outbox_admin_cancel(struct outbox_admin *admin, const char *id, const char *reason,
			bool *ret_done, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What a message gets. What is NULL stays as it is. */
struct outbox_correction {
	size_t struct_size;
	const void *data;
	size_t size;
	const char *content_type;
	const struct outbox_header *headers; /* in place of all that it has */
	size_t n_headers;
};

#define OUTBOX_CORRECTION_INIT OUTBOX_SIZED(struct outbox_correction)

/* Correct a message that no target has received: see struct outbox_amend. It is checked as a publisher's message is: EINVAL
 * names the field. ECONFLICT: it was delivered, is being sent, or nothing is left to deliver. ret_amended may be NULL. */
int outbox_admin_amend(struct outbox_admin *admin, const char *id,
		       const struct outbox_correction *correction, const char *reason,
		       struct outbox_amended *ret_amended,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* subject: OUTBOX_REBASE_REASON once, with what is wrong, then each lane, with what becomes of it. */
typedef void (*outbox_realigned)(void *context, const char *subject, const char *text);

/* After a database was restored or copied, relays refuse its lanes until this gives them positions that are valid here.
 * Stop them first. Nothing is reported when every position is right. how (actor: the admin's) and report may be NULL. */
int outbox_admin_realign(struct outbox_admin *admin, const struct outbox_rebase *how,
			 outbox_realigned report, void *context,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- health and metrics -------------------------------------------------------------------- */

enum outbox_level {
	OUTBOX_HEALTHY = 0, /* of a finding: information, such as a target that somebody paused */
	OUTBOX_DEGRADED = 1,
	OUTBOX_UNHEALTHY = 2
};

struct outbox_finding {
	const char *rule;   /* "failed", "outage" ...: docs/runbook.md has a section for each */
	int level;          /* enum outbox_level */
	const char *target; /* NULL: it is about the store */
	outbox_time since;  /* by the clock; 0: one sample cannot tell */
	const char *text;   /* what is wrong, with the number and the limit */
};

struct outbox_health {
	int level; /* enum outbox_level: the worst finding's */
	size_t count;
	struct outbox_finding *findings; /* the worst first */
};

/*
 * What is wrong, by the rules of `outbox alerts`, from one sample: a rule that must hold for a while counts at once, and
 * rules that need two samples (sending, latency) or the relay itself (relay_down, cleanup) are left out. A store that does not
 * answer is a finding, not an error.
 */
int outbox_admin_health(struct outbox_admin *admin, struct outbox_arena *arena,
			struct outbox_health *ret_health, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A store, and the relay of this process that works on it. */
struct outbox_metrics_source {
	size_t struct_size;
	struct outbox_admin *admin;
	const struct outbox_relay *relay; /* its counters and histograms; NULL: none */
};

#define OUTBOX_METRICS_SOURCE_INIT OUTBOX_SIZED(struct outbox_metrics_source)

/*
 * The text that Prometheus scrapes (version 0.0.4): the relay's metrics of docs/metrics.md, without those of the
 * process, which the application provides itself. One call for all stores, because a metric may occur once; each is
 * queried for its numbers, and one that does not answer has outbox_source_up 0. ret_text: the arena's.
 */
#define OUTBOX_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
int outbox_metrics_text(const struct outbox_metrics_source *sources, size_t n_sources,
			struct outbox_arena *arena, const char **ret_text,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

#ifdef __cplusplus
}
#endif

#endif
