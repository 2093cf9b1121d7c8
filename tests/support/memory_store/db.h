/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_STORE_DB_H
#define MEMORY_STORE_DB_H

/*
 * What a memory database is made of. Everything is guarded by db->lock, which ops.c takes around
 * every op.
 *
 *   db -> rows[seq - base]                  the log; NULL where a row was rolled back or purged
 *      -> targets, by name
 *           -> deliveries[seq - base]       one mark per message: what is settled, exactly
 *                -> detour                  only trouble has one
 *           -> keys                         the unfinished detours of a key, ascending
 *           -> lanes -> receipts            the lane's log
 *                    -> claim               what is in flight
 *                    -> first, last         the pending and sending detours of the lane, ascending
 *
 * A position is not a number here: a late commit may show a row far below everything settled. low is
 * only a hint that nothing below it can ever be claimed from the log again.
 */

#include "base/random.h"
#include "core/bands.h"
#include "core/caution.h"
#include "core/settlement.h"

#include <outbox/store.h>

#include <pthread.h>

#include "memory_store/amend.h"
#include "memory_store/attempt.h"
#include "memory_store/dead.h"
#include "memory_store/memory.h"

#define MEMORY_SCHEMA 2
#define MEMORY_BUCKETS 4096 /* a power of two */
#define MEMORY_AHEAD 1000   /* how far the log may run ahead of an idle lane before it follows */

struct memory_message {
	int64_t seq;
	outbox_time created_at;
	int key_hash;
	int64_t committed;       /* the how-manieth commit; 0: not yet */
	bool again;              /* its number was given before */
	struct outbox_message m; /* strings and payload are behind this struct, in one block */
	struct memory_message *next_id;
	char *cancelled;                /* why; NULL: it is not */
	struct memory_amended *amended; /* what it was before, oldest first; amend.c */
};

enum memory_mark {
	MARK_NEW = 0,
	MARK_CLAIMED,   /* in flight, straight from the log */
	MARK_DELIVERED, /* by receipt n */
	MARK_PASSED     /* not routed, or before the target's start: passed by receipt n */
};

struct memory_delivery {
	enum memory_mark mark;
	int64_t n;
	struct memory_detour *detour;
	struct memory_dead *arrived; /* as a dead letter while it is in flight */
};

struct memory_detour {
	struct memory_message *message;
	int lane;
	int state, why, attempts;
	int why_before; /* while it is being sent: what it is again when it is returned */
	outbox_time next_attempt_at; /* 0: none; parked ones go when nothing is before them */
	outbox_time failing_since, last_status_at;
	outbox_time ready_at; /* since when it can be sent; 0: since its message could */
	bool suspect;
	char *error, *reason;
	struct memory_attempt *tried; /* failed attempts, oldest first; attempt.c */
	struct memory_dead *dead;     /* NULL: it is no dead letter */
	const char *owner;
	int64_t n;                                 /* the receipt that last changed it */
	struct memory_key *key;                    /* NULL: no key, or finished */
	struct memory_detour *key_prev, *key_next; /* unfinished ones of the key */
	bool listed;                               /* in the lane's list */
	struct memory_detour *lane_prev, *lane_next;
	uint64_t picked; /* the claim that may take it */
};

struct memory_key {
	const char *text; /* the first detour's message has it */
	struct memory_detour *first, *last;
	struct memory_key *next;
	uint64_t walked;  /* the claim that looked at this key */
	int64_t stop_seq; /* in that claim: the first one that blocks what is behind it; 0: none */
};

struct memory_receipt {
	int64_t n, fence_token;
	const char *owner;
	outbox_time settled_at;
	bool take;
	int64_t pos; /* how far the log was read before its claim */
	struct caution caution;
	struct settlement_counts counts;
	int64_t delivered_total;
	int64_t refs; /* marks that name this receipt */
};

struct memory_item {
	int64_t seq;
	bool from_log, blocked;
};

struct memory_lane {
	const char *owner;
	outbox_time lease_until;
	int64_t takeovers;
	struct memory_receipt *receipts; /* never empty */
	size_t n_receipts, cap_receipts;
	struct memory_item *claim;
	size_t n_claim, cap_claim;
	int64_t low;     /* rows up to here need no look any more */
	int64_t read_to; /* how far the log was read at the last receipt */
	bool refused;    /* until it is rebased */
	struct memory_detour *first, *last;
};

struct memory_worker {
	char *owner, *outage, *place;
	outbox_time alive_until, outage_since;
};

struct memory_target {
	char *name;
	int64_t version;
	char *route_text;
	struct outbox_arena *route_memory;
	struct outbox_route route;
	struct band_plan bands;
	char *band_of; /* NULL: of no family */
	int64_t begin; /* commits up to this one may be before its start; 0: none */
	bool hold, unordered, paused;
	char *paused_by, *paused_reason;
	outbox_time open_since; /* resumed, or else registered */
	char *dead_letter;      /* the target that gets what fails here; NULL: none */
	struct memory_lane *lanes;
	int n_lanes;
	struct memory_worker *workers; /* by name */
	size_t n_workers, cap_workers;
	struct memory_delivery *deliveries;
	size_t cap_deliveries;
	struct memory_key **keys; /* MEMORY_BUCKETS */
};

struct memory_event {
	int64_t seq, n;
	const char *target, *owner;
	outbox_time at;
	int state, why, attempts;
};

struct memory_audit {
	int64_t number;
	outbox_time at;
	char *actor, *action, *target, *id, *reason, *detail;
};

struct memory_db {
	pthread_mutex_t lock;
	char *name;
	char *source; /* "/outbox/NAME" */
	struct outbox_clock *clock;
	struct random_state random;
	int schema, lanes;
	bool ever_settled;
	size_t open_tx;

	struct memory_message **rows;
	size_t n_rows, cap_rows;
	size_t n_gone;               /* leading rows that are NULL */
	int64_t base;                /* seq of rows[0] */
	int64_t visible;             /* the highest committed seq ever */
	int64_t next;                /* the counter was set back to it; 0: behind all rows */
	size_t n_again;              /* rows whose number was given before */
	int64_t commits, count;      /* of messages: ever, and those that are there */
	struct memory_message **ids; /* MEMORY_BUCKETS */
	struct memory_interned **interned;

	struct memory_target **targets; /* by name */
	size_t n_targets, cap_targets;
	struct memory_unserved *unserved; /* unserved.h */
	size_t n_unserved, cap_unserved;
	uint64_t claims; /* numbers the claims, for memory_detour.picked */

	struct memory_event *events;
	size_t n_events, cap_events;
	int64_t first_event;
	struct memory_audit *audit;
	size_t n_audit, cap_audit;
	int64_t last_audit;

	memory_fault_fn fault;
	void *fault_context;
};

struct memory_store {
	struct outbox_store base;
	struct memory_db *db;
	struct outbox_clock *clock;
	struct outbox_random *random;
};

/* ---- db.c: memory, names ------------------------------------------------------------------- */

void *memory_alloc(size_t size);     /* zeroed, never NULL */
char *memory_text(const char *text); /* a copy; NULL gives NULL */
/* Room for one more: the array, grown when needed. */
void *memory_grow(void *array, size_t count, size_t *capacity, size_t size);
const char *memory_intern(struct memory_db *db, const char *text);
uint64_t memory_hash(const char *text);
void memory_replace(char **text, const char *with);
void memory_db_clear(struct memory_db *db);

static inline outbox_time memory_now(struct memory_store *store)
{
	return store->clock->wall(store->clock);
}

/* ---- log.c: messages ----------------------------------------------------------------------- */

struct memory_message *memory_log_row(const struct memory_db *db, int64_t seq); /* or NULL */
struct memory_message *memory_log_find(const struct memory_db *db, const char *id);
int64_t memory_log_last(const struct memory_db *db);
/* Not committed yet. */
struct memory_message *memory_log_insert(struct memory_db *db, const struct outbox_message *message,
					 outbox_time now, struct outbox_random *random,
					 struct outbox_clock *clock);
void memory_log_commit(struct memory_db *db, struct memory_message *row);
void memory_log_remove(struct memory_db *db, struct memory_message *row);
void memory_log_trim(struct memory_db *db);
/* False: the arena is full. */
bool memory_log_read(const struct memory_db *db, const struct memory_message *row, bool payload,
		     struct outbox_arena *arena, struct outbox_claimed *ret_message);

/* ---- rebase.c: numbers that are given again ------------------------------------------------- */

/* The number that the next row gets. */
int64_t memory_log_next(struct memory_db *db);
bool memory_any_refused(const struct memory_db *db);
bool memory_lane_is_refused(const struct memory_db *db, const struct memory_lane *lane);
/* EPROTO, and from then on until it is rebased. */
int memory_lane_check(const struct memory_db *db, const char *target, int number,
		      struct memory_lane *lane, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- target.c ------------------------------------------------------------------------------ */

struct memory_target *memory_target_find(const struct memory_db *db, const char *name);
int memory_target_get(const struct memory_db *db, const char *name,
		      struct memory_target **ret_target, struct outbox_error *err) OUTBOX_MUSTCHECK;
int memory_lane_get(const struct memory_db *db, const char *name, int lane,
		    struct memory_target **ret_target, struct memory_lane **ret_lane,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
void memory_target_free(struct memory_db *db, struct memory_target *target);
bool memory_target_routes(const struct memory_target *target, const struct memory_message *row);
/* Make room for the deliveries of every row of the log. */
void memory_target_reserve(struct memory_target *target, size_t rows);

static inline struct memory_delivery *memory_delivery(const struct memory_db *db,
						      const struct memory_target *target,
						      int64_t seq)
{
	return &target->deliveries[seq - db->base];
}

/* ---- receipt.c ----------------------------------------------------------------------------- */

struct memory_receipt *memory_receipt_last(const struct memory_lane *lane);
struct memory_receipt *memory_receipt_at(const struct memory_lane *lane, int64_t n); /* or NULL */
/* Numbered one further, running total, position and caution carried on. */
struct memory_receipt *memory_receipt_append(struct memory_db *db, struct memory_lane *lane,
					     int64_t token, const char *owner, outbox_time now);
void memory_mark(struct memory_db *db, struct memory_target *target, struct memory_lane *lane,
		 int64_t seq, enum memory_mark mark);
/* One message at a time? */
bool memory_lane_is_cautious(const struct memory_lane *lane);

/* ---- detour.c ------------------------------------------------------------------------------ */

/* The delivery's detour, made (in no list yet) when it has none. */
struct memory_detour *memory_detour_make(struct memory_db *db, struct memory_target *target,
					 struct memory_message *row);
/* Its new state and why, and the lists it then belongs to. */
void memory_detour_set(struct memory_target *target, struct memory_detour *detour, int state,
		       int why, outbox_time now);
/* Does it hold back what comes behind it in its key, on a target that keeps order? */
bool memory_detour_blocks(const struct memory_target *target, const struct memory_detour *detour,
			  outbox_time now);
struct memory_key *memory_key_find(const struct memory_target *target, const char *key);
void memory_detour_free(struct memory_target *target, struct memory_detour *detour);

/* ---- parts of settle_and_claim and take_over --------------------------------------------------- */

/* take_over.c: everything in flight becomes pending; a take-over receipt is appended. */
void memory_lane_take(struct memory_db *db, struct memory_target *target, int lane,
		      const char *owner, int64_t token, outbox_time now);

/* settle.c: EINVAL when it is not the claim in flight, before anything was changed. */
int memory_settle_check(const struct memory_lane *lane,
			const struct outbox_settle_and_claim *request,
			struct outbox_error *err) OUTBOX_MUSTCHECK;
void memory_settle(struct memory_db *db, struct memory_target *target,
		   const struct outbox_settle_and_claim *request, struct memory_receipt *receipt,
		   outbox_time now);

/*
 * claim.c: what could be claimed now, added to lane->claim, nothing marked yet. True: the claim was
 * cut, there is or may be more.
 */
bool memory_claim_pick(struct memory_db *db, struct memory_target *target, int lane, size_t max,
		       size_t max_bytes, outbox_time now);
/* Mark what was picked as in flight, by the lane's last receipt. */
void memory_claim_mark(struct memory_db *db, struct memory_target *target, int lane, outbox_time now);
/* Rows up to `through` that are not for this target are passed, by the lane's last receipt. */
void memory_claim_pass(struct memory_db *db, struct memory_target *target, int lane, int64_t through);
outbox_time memory_claim_next_due(const struct memory_lane *lane, outbox_time now);
/* Read lane->claim into the arena; *ret_count is how many fitted. */
struct outbox_claimed *memory_claim_read(struct memory_db *db, struct memory_target *target,
					 int lane, struct outbox_arena *arena, size_t *ret_count);

/* ---- looking ------------------------------------------------------------------------------- */

/* The delivery's state (0: this target does not get it) and why. */
int memory_delivery_state(const struct memory_db *db, const struct memory_target *target,
			  const struct memory_message *row, int *ret_why);
/* The same for people: what no lane has read yet is deferred until it is due. */
int memory_why_at(const struct memory_message *row, int why, outbox_time now);
bool memory_delivery_read(const struct memory_db *db, const struct memory_target *target,
			  const struct memory_message *row, struct outbox_arena *arena,
			  struct outbox_delivery *ret_delivery);
/* When it was settled or last changed; 0: never. */
outbox_time memory_delivery_at(const struct memory_db *db, const struct memory_target *target,
			       const struct memory_message *row);

void memory_audit_add(struct memory_db *db, const struct memory_audit *row);

/* ---- the ops, called with the lock held ---------------------------------------------------- */

int memory_open(const struct outbox_store_config *config, bool create,
		struct outbox_store **ret_store, struct outbox_error *err);
void memory_close(struct outbox_store *store);
int memory_init(struct memory_store *s, const struct outbox_init_options *options,
		struct outbox_error *err);
int memory_upgrade(struct memory_store *s, const struct outbox_init_options *options, int *ret_from,
		   struct outbox_error *err);
int memory_drop(struct memory_store *s, struct outbox_error *err);
int memory_truncate(struct memory_store *s, struct outbox_error *err);
int memory_info(struct memory_store *s, struct outbox_store_info *ret_info, struct outbox_error *err);
/* ESCHEMA when there is none, or a newer one. */
int memory_schema_check(const struct memory_db *db, struct outbox_error *err) OUTBOX_MUSTCHECK;
int memory_append(struct memory_store *s, const struct outbox_message *messages, size_t n_messages,
		  int64_t *ret_seqs, bool *ret_repeated, struct outbox_error *err);
int memory_target_put(struct memory_store *s, const struct outbox_target_def *def,
		      int64_t *ret_version, struct outbox_error *err);
int memory_target_pause(struct memory_store *s, const char *name, bool pause, const char *actor,
			const char *reason, struct outbox_error *err);
int memory_target_drop(struct memory_store *s, const char *name, const char *actor,
		       const char *reason, struct outbox_error *err);
int memory_lease(struct memory_store *s, const struct outbox_lease_request *request,
		 struct outbox_lease *ret_lease, struct outbox_error *err);
int memory_release(struct memory_store *s, const char *target, int lane, const char *owner,
		   struct outbox_error *err);
int memory_take_over(struct memory_store *s, const char *target, int lane, const char *owner,
		     int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err);
int memory_look(struct memory_store *s, const struct outbox_look *look,
		struct outbox_looked *ret_looked, struct outbox_error *err);
int memory_settle_and_claim(struct memory_store *s, const struct outbox_settle_and_claim *request,
			    struct outbox_arena *arena, struct outbox_claim *ret_claim,
			    struct outbox_error *err);
int memory_list(struct memory_store *s, const struct outbox_filter *filter,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err);
int memory_get(struct memory_store *s, const char *id, struct outbox_arena *arena,
	       struct outbox_claimed *ret_message, struct outbox_error *err);
int memory_tail(struct memory_store *s, const char *cursor, size_t limit,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err);
int memory_act(struct memory_store *s, const struct outbox_act *act, struct outbox_acted *ret_acted,
	       struct outbox_error *err);
int memory_audit(struct memory_store *s, const char *id, size_t limit, struct outbox_arena *arena,
		 struct outbox_audit **ret_rows, size_t *ret_count, struct outbox_error *err);
int memory_stats(struct memory_store *s, struct outbox_arena *arena, struct outbox_stats *ret_stats,
		 struct outbox_error *err);
int memory_purge(struct memory_store *s, const struct outbox_purge *purge,
		 struct outbox_purged *ret_purged, struct outbox_error *err);
int memory_rebase(struct memory_store *s, const struct outbox_rebase *rebase,
		  void (*say)(void *context, int level, const char *subject, const char *text),
		  void *context, struct outbox_error *err);

#endif
