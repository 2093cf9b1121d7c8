/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_STORE_H
#define OUTBOX_STORE_H

/*
 * The store contract: what a driver for a database must do, op by op.
 *
 * A store keeps the log of messages, the receipts of the lanes that read it, and the detours of the
 * deliveries that did not go straight through. It decides nothing: which outcome a message has is
 * worked out by the engine and handed in; the store makes it durable, atomically, behind the fence.
 *
 * General rules
 * - Every object is used by one thread at a time; each worker opens one of its own.
 * - Each op is one short transaction of its own. None is open when an op returns.
 * - Times that are stored or compared are the database's ("store time"). A store that has no clock
 *   of its own (SQLite, memory) uses the wall() of the clock it was opened with.
 * - Statuses: EBUSY (lock, deadlock, serialization: nothing happened, repeat), ECONN (the connection
 *   is gone: close and open again; the outcome of a write is unknown), ETIMEDOUT (outcome unknown),
 *   EFULL, EFENCED, ESCHEMA, ECONFLICT, ENOTFOUND, EPROTO. After an unknown outcome the engine
 *   repeats the very same request; every relay op is made so that done twice is done once.
 * - Text that comes back is allocated from the arena that came in.
 *
 * This contract is not stable yet, unlike that of transports: ops are added, changed and renamed, and a driver that was
 * built with another version of it (OUTBOX_STORE_CONTRACT) is refused when it is registered.
 *
 * tests/contract/store_contract.c proves this page for every driver.
 */

#include <outbox/arena.h>
#include <outbox/clock.h>
#include <outbox/delivery.h>
#include <outbox/error.h>
#include <outbox/inbox.h>
#include <outbox/lease.h>
#include <outbox/message.h>
#include <outbox/target.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct outbox_store;

#define OUTBOX_TARGET_NAME_MAX 63 /* [a-z0-9_-], starts with a letter */

/* ---- opening ------------------------------------------------------------------------------- */

struct outbox_store_config {
	size_t struct_size;
	const char *url;              /* "sqlite:app.db" */
	struct outbox_clock *clock;   /* outlives the store */
	struct outbox_random *random; /* outlives the store; one thread at a time */
	void *context;                /* what the application registered the driver with */
};

struct outbox_init_options {
	size_t struct_size;
	int lanes;    /* per target; 0: the driver's default. Must agree when already initialised */
	bool dry_run; /* upgrade only: say what would be done, change nothing */
	bool partition; /* the log in partitions that retention drops whole; new ones only */
	int doorbell;   /* publishers wake a sleeping relay: 1 on, -1 off, 0 as it is (new: off) */
	/* of script() alone */
	int from;   /* what leads from this schema to the newest; 0: a new one */
	bool brief; /* with from: only what changes tables, types and indexes, for people to read */
	bool drop;  /* what removes it all */
};

#define OUTBOX_INIT_OPTIONS_INIT OUTBOX_SIZED(struct outbox_init_options)

#define OUTBOX_REBASE_REASON "reason"

struct outbox_rebase {
	size_t struct_size;
	bool same_history; /* after pg_upgrade: transaction numbers go on, only the server's name is new */
	bool dry_run;
	const char *actor;
};

#define OUTBOX_REBASE_INIT OUTBOX_SIZED(struct outbox_rebase)

struct outbox_store_info {
	char driver[32];     /* "sqlite 3.40.1" */
	char name[128];      /* the store's short name: "app" for app.db */
	int schema_version;  /* 0: no outbox here */
	int program_version; /* the newest this program knows */
	int lanes;
	char elsewhere[64]; /* schema_version 0: the schema that has an outbox; "": none is known */
	char schema[64];    /* of the database, that it is in; "": there are none */
};

/* ---- the lane's log of receipts ------------------------------------------------------------ */

/* A lane as its owner knows it: number and fence token of its last receipt, and what take_over() found. */
struct outbox_head {
	int64_t n;
	int64_t fence_token;
	int takeovers; /* in a row, each with messages in flight, nothing settled in between */
	bool cautious; /* claims have one message each until the suspect claim is passed */
	int64_t suspect_seq; /* the message that was alone in flight when the owner died, or 0 */
	int64_t in_flight;   /* messages of the owner before that may have been sent already */
};

/* How one claimed message ended. Worked out by src/core/decide.c, made durable by settle_and_claim(). */
enum outbox_outcome {
	OUTBOX_OUTCOME_UNSET = 0,
	OUTBOX_OUT_DELIVERED = 1,
	OUTBOX_OUT_RETURNED = 2, /* not sent or not known: as if never claimed, attempts unchanged */
	OUTBOX_OUT_WAITING = 3,  /* pending (retry), next attempt at store time + delay */
	OUTBOX_OUT_DEFERRED = 4, /* pending (deferred) until due_at */
	OUTBOX_OUT_PARKED = 5,   /* pending (parked) behind its key */
	OUTBOX_OUT_FAILED = 6
};

struct outbox_settlement {
	int64_t seq;
	int outcome;        /* enum outbox_outcome */
	int attempts;       /* the new count; ignored for DELIVERED and RETURNED */
	outbox_time delay;  /* WAITING */
	outbox_time due_at; /* DEFERRED, store time */
	bool suspect;       /* must be claimed alone from now on */
	const char *error;  /* WAITING, FAILED; cut to 2,000 characters by the engine */
	/* WAITING, FAILED after a try: a row of the delivery's history. attempt 0: it was not tried */
	int attempt; /* which one it was, from 1 on; one that is not charged does not count */
	int verdict; /* enum outbox_verdict */
	int native;  /* the broker's code */
	const char *answer; /* what it said in full; NULL: error is all */
};

struct outbox_settle_and_claim {
	const char *target;
	int lane;
	const char *owner;
	int64_t n, fence_token; /* the receipt this owner holds */
	int64_t new_token;      /* of the receipt to append; the same again when repeated */
	int64_t route_version;
	/* one for each message of the claim in flight, in the claim's order; 0: nothing in flight */
	const struct outbox_settlement *settled;
	size_t n_settled;
	/* the next claim; max_messages 0 claims nothing */
	size_t max_messages;
	size_t max_bytes; /* payloads and headers; the first message is always taken, whatever its size */
};

struct outbox_claimed {
	struct outbox_message message; /* defaults filled in: id, kind, source, content_type, times */
	int64_t seq;
	outbox_time created_at;
	int attempts;
	outbox_time failing_since; /* first failed try; 0: none yet */
	bool detour;               /* came from its detour row, not straight from the log */
	bool suspect;              /* alone in this claim on purpose */
	const char *malformed;     /* not NULL: the stored row makes no sense (headers that are not
				  JSON ...): it fails with this text and stops nobody */
	bool blocked; /* its key has an unfinished detour that is not in this claim: park it. Its
		         payload is not loaded */
	/* It failed at another target, which has this one for its dead letter: where, why, after how
	 * many failed tries, when. dead_target NULL: it did not; dead_reason may be NULL */
	const char *dead_target, *dead_reason;
	int dead_attempts;
	outbox_time dead_at;
	/* A detour's: since when it can be sent, if that is not since created_at or due_at: it was requeued,
	 * deferred to this time, or came as a dead letter. 0: it is. */
	outbox_time ready_at;
};

struct outbox_claim {
	int64_t n, fence_token; /* the head after this call */
	outbox_time store_now;
	bool paused;          /* the target is paused: nothing was claimed */
	bool stale_route;     /* newer routing registered: nothing was claimed, let the lane go */
	bool cautious;        /* as in outbox_head, after this call */
	outbox_time next_due; /* store time of the lane's next waiting or deferred delivery, or 0 */
	size_t count;
	struct outbox_claimed *items; /* ascending seq; from the arena */
};

/* Lanes that wait, each with the receipt that its owner holds. */
struct outbox_look {
	const char *target;
	int64_t route_version;
	size_t count;
	const int *lanes; /* ascending */
	const int64_t *n, *fence_tokens;
};

struct outbox_looked {
	outbox_time store_now;
	outbox_time next_due; /* store time of the next waiting or deferred delivery of all of them, or 0 */
	bool work[OUTBOX_LANES_MAX]; /* for each of the lanes: settle_and_claim() may find something */
};

/* ---- the ops ------------------------------------------------------------------------------- */

/* Making an outbox and keeping it up to date. */
struct outbox_schema_ops {
	/* Create the schema, or find it already there: idempotent. A newer one is ESCHEMA. */
	int (*init)(struct outbox_store *store, const struct outbox_init_options *options,
		    struct outbox_error *err);

	/* Bring an older schema to this program's version. ret_from: the version found. */
	int (*upgrade)(struct outbox_store *store, const struct outbox_init_options *options,
		       int *ret_from, struct outbox_error *err);

	/* Remove every outbox object, or every row. The caller has asked for confirmation. */
	int (*drop)(struct outbox_store *store, struct outbox_error *err);
	int (*truncate)(struct outbox_store *store, struct outbox_error *err);

	/* Cheap; works without a schema (version 0). */
	int (*info)(struct outbox_store *store, struct outbox_store_info *ret_info,
		    struct outbox_error *err);

	/*
	 * Optional. What init() would run, or upgrade() or drop(), as SQL for people who run their own migrations: a
	 * whole script with comments. Needs no store. schema NULL: where the session that runs it puts new tables. The
	 * caller frees ret_sql.
	 */
	int (*script)(const struct outbox_init_options *options, const char *schema, char **ret_sql,
		      struct outbox_error *err);
};

/* What a relay does: targets, their lanes and the deliveries in them. */
struct outbox_lane_ops {
	/*
	 * Register a target or change its routing. Creates its lanes, each with a first receipt.
	 * Same routing: same version; different: version + 1, written to ret_version. A relay with
	 * an older version gets no lanes from then on. Messages settled earlier are not routed again.
	 *
	 * With band_of, a message belongs to one target of the family forever, by its place in the log. When
	 * NAME gets bands (it is put with band_of = NAME, and had none), what has a place in the log already
	 * stays NAME's, whatever its band; the new bands apply behind that place. A target that is put with
	 * band_of = NAME and is new starts at that very place; where NAME began with bands, where NAME starts.
	 * When NAME loses its bands (put without band_of), what has a place stays with the target of its band
	 * and all bands are NAME's behind it; the other targets of the family get OUTBOX_BAND_NONE in the same
	 * transaction: they go on until what they have is done. So nothing falls between two targets, nothing is
	 * sent by two, and it does not matter how often or when it is switched. A name that is taken by a target
	 * outside the family is ECONFIG.
	 */
	int (*target_put)(struct outbox_store *store, const struct outbox_target_def *def,
			  int64_t *ret_version, struct outbox_error *err);

	/* Optional. Would target_put() refuse this target without a start: is it new, and were messages delivered here
	 * before? */
	int (*wants_start)(struct outbox_store *store, const char *target, bool *ret_wants,
			   struct outbox_error *err);

	/* Optional: OUTBOX_BAND_* of NAME-high and NAME-low that are registered as bands of this target. A store
	 * without it knows no bands. */
	int (*bands)(struct outbox_store *store, const char *target, unsigned *ret_bands,
		     struct outbox_error *err);

	/*
	 * One round of lease keeping: record that this worker is alive, renew what it holds, take
	 * free or expired lanes up to its share. Shares are exact: lanes divided by live workers,
	 * the remainder to the first ones by name. Never takes away: a worker above its share lets
	 * a lane go with release() when that lane has nothing in flight.
	 *
	 * Workers of one target send to one place. One whose place differs from that of a worker which is alive
	 * holds nothing, counts in no share and learns so; it may be alive itself as soon as the others are gone.
	 */
	int (*lease)(struct outbox_store *store, const struct outbox_lease_request *request,
		     struct outbox_lease *ret_lease, struct outbox_error *err);

	/* Give one lane back at once. Not the owner any more: no effect, no error. */
	int (*release)(struct outbox_store *store, const char *target, int lane, const char *owner,
		       struct outbox_error *err);

	/*
	 * Begin to work on a leased lane: append a take-over receipt with the same position, which
	 * fences its former owner. Messages that were in flight become pending again.
	 * Repeated with the same token it is done once.
	 */
	int (*take_over)(struct outbox_store *store, const char *target, int lane, const char *owner,
			 int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err);

	/*
	 * Settle the claim in flight and claim the next batch, as one compare-and-append of receipt
	 * n + 1. EFENCED when receipt n is not the last one or its token is not ours, unless n + 1
	 * bears new_token: then this very request was already done and its claim is read again.
	 * Nothing settled and nothing found: nothing is written and the head stays.
	 *
	 * A claim is due detours that are first in their key, with the parked run behind each, and
	 * new log rows, in seq order, cut by max_messages and max_bytes. A log row whose key has an
	 * unfinished detour outside the claim comes as `blocked`. A suspect comes alone. Deferred
	 * detours that are not due block nobody. With the target's `hold`, failed ones block too.
	 *
	 * RETURNED log rows at the end of the claim go back to the log without a trace; a RETURNED
	 * one that has settled ones behind it becomes a detour that is due at once. PARKED is always
	 * a detour, never part of that tail: a lone blocked row would be claimed again forever.
	 */
	int (*settle_and_claim)(struct outbox_store *store,
				const struct outbox_settle_and_claim *request,
				struct outbox_arena *arena, struct outbox_claim *ret_claim,
				struct outbox_error *err);

	/*
	 * Optional: the same for several lanes of one target, in ascending order, in one transaction: each request has
	 * its arena and its claim, and all claims have the store_now of the last one. If it fails, the caller repeats
	 * each request alone, with the same token, and learns there which lane it is about.
	 */
	int (*settle_and_claim_lanes)(struct outbox_store *store,
				      const struct outbox_settle_and_claim *requests, size_t count,
				      struct outbox_arena *const *arenas,
				      struct outbox_claim *ret_claims, struct outbox_error *err);

	/*
	 * Optional: is there anything to do in lanes of one target that have nothing in flight? One cheap question for
	 * all of them, which writes nothing. It may say yes where settle_and_claim() then finds nothing, as
	 * it must where that would fail, but never no where there is something.
	 */
	int (*look)(struct outbox_store *store, const struct outbox_look *look,
		    struct outbox_looked *ret_looked, struct outbox_error *err);

	/* Optional. Tell people, by stats(), that this worker does not serve a target, and why; or that this is
	 * over. */
	int (*unserved)(struct outbox_store *store, const struct outbox_unserved *note,
			struct outbox_error *err);

	/* Optional, called when the worker has nothing else to do: checkpoints and the like. */
	int (*maintain)(struct outbox_store *store, struct outbox_error *err);

	/*
	 * Optional: the doorbell. A worker that has nothing to do calls it before it sleeps. ret_fd: a
	 * descriptor that becomes readable when something was published, or -1: there is no bell at the
	 * moment, poll as always. ENOTSUP: there is one, and this connection cannot hear it. ret_again: publishers were active just now, look
	 * once more before you sleep. ret_fd belongs to the store. Ringing is a hint: polling goes on, slower.
	 * Called again after a ring, it goes on listening; ret_again then: it cannot, stop and begin anew.
	 */
	int (*listen)(struct outbox_store *store, int *ret_fd, bool *ret_again,
		      struct outbox_error *err);

	/* Woken, or done sleeping: publishers need not ring any more. */
	int (*stop_listening)(struct outbox_store *store, struct outbox_error *err);
};

/*
 * What people and programs ask and do: the command line, the admin API, metrics, retention. A store of an application's own
 * may leave the whole table out. A relay delivers without it, and does not remove what is finished (purge_interval must be
 * OUTBOX_NEVER); all the rest is ENOTSUP.
 */
struct outbox_operator_ops {
	/*
	 * Append messages to the log in a transaction of the store's own. For the command line and
	 * tests: applications publish in *their* transaction with the client library. Messages were
	 * validated. A caller-given id that is already in the log is no error: ret_repeated (may be
	 * NULL, else n_messages entries) is set. ret_seqs likewise optional.
	 */
	int (*append)(struct outbox_store *store, const struct outbox_message *messages,
		      size_t n_messages, int64_t *ret_seqs, bool *ret_repeated,
		      struct outbox_error *err);

	/* Pause or resume. ENOTFOUND. Same state again changes nothing. Leaves an audit row. */
	int (*target_pause)(struct outbox_store *store, const char *target, bool pause,
			    const char *actor, const char *reason, struct outbox_error *err);

	/* Remove a target, its lanes, receipts and detours; its messages no longer wait for it. ECONFLICT
	 * while it is the dead letter of another one. */
	int (*target_drop)(struct outbox_store *store, const char *target, const char *actor,
			   const char *reason, struct outbox_error *err);

	/* Deliveries by filter, with keyset paging. */
	int (*list)(struct outbox_store *store, const struct outbox_filter *filter,
		    struct outbox_arena *arena, struct outbox_page *ret_page,
		    struct outbox_error *err);

	/* One whole message by id, payload included. ENOTFOUND. */
	int (*get)(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		   struct outbox_claimed *ret_message, struct outbox_error *err);

	/* What was settled after cursor (NULL: from now on), oldest first. The page's cursor is
	 * never NULL: pass it in again. */
	int (*tail)(struct outbox_store *store, const char *cursor, size_t limit,
		    struct outbox_arena *arena, struct outbox_page *ret_page,
		    struct outbox_error *err);

	/* Requeue, discard, defer. What the last receipt claims is refused with ECONFLICT text "is
	 * being sent right now; try again" while the lease lives. Each change leaves an audit row in
	 * the same transaction. Of several concurrent requeues exactly one wins. */
	int (*act)(struct outbox_store *store, const struct outbox_act *act,
		   struct outbox_acted *ret_acted, struct outbox_error *err);

	/* Audit rows of one message (NULL: all), newest first, at most limit. */
	int (*audit)(struct outbox_store *store, const char *id, size_t limit,
		     struct outbox_arena *arena, struct outbox_audit **ret_rows, size_t *ret_count,
		     struct outbox_error *err);

	/* Optional. An audit row for what was done with its messages elsewhere: a replay. Number, time and
	 * id of the row are not looked at. */
	int (*audit_add)(struct outbox_store *store, const struct outbox_audit *row,
			 struct outbox_error *err);

	int (*stats)(struct outbox_store *store, struct outbox_arena *arena,
		     struct outbox_stats *ret_stats, struct outbox_error *err);

	/* Remove finished messages past their retention, at most limit, and the receipts and detours
	 * that only they needed; never a lane's last receipt, nothing while no target is registered. A target
	 * that does not get a message does not hold it back, however far its lane is; a message that no
	 * target gets goes by its own age. */
	int (*purge)(struct outbox_store *store, const struct outbox_purge *purge,
		     struct outbox_purged *ret_purged, struct outbox_error *err);

	/* The messages that purge() would remove, after after_seq, for an archive. */
	int (*purgeable)(struct outbox_store *store, const struct outbox_purge *purge,
			 int64_t after_seq, struct outbox_arena *arena,
			 struct outbox_claimed **ret_messages, size_t *ret_count,
			 struct outbox_error *err);

	/* Optional. For `outbox doctor`: calls say() once per finding; level 0 ok, 1 note, 2
	 * warning, 3 error. */
	int (*check)(struct outbox_store *store,
		     void (*say)(void *context, int level, const char *subject, const char *text),
		     void *context, struct outbox_error *err);

	/*
	 * Optional. Repair positions that belong to another history (restored, copied, truncated, numbers given
	 * again), without loss and without touching messages. say() as in check(): first why, with the subject
	 * OUTBOX_REBASE_REASON, then once per lane. A lane whose position does is refused by take_over() and
	 * settle_and_claim() with EPROTO, and stays refused until this was done: also when what showed it is to be
	 * seen no more. Nothing is purged meanwhile.
	 */
	int (*rebase)(struct outbox_store *store, const struct outbox_rebase *rebase,
		      void (*say)(void *context, int level, const char *subject, const char *text),
		      void *context, struct outbox_error *err);

	/*
	 * Optional. Take the personal data out of one message, for good: see struct outbox_redact.
	 * ENOTFOUND; ECONFLICT, with the delivery that is in the way, unless each of its deliveries is
	 * delivered or discarded. ret_done (may be NULL): false, it was redacted before and nothing changed.
	 */
	int (*redact)(struct outbox_store *store, const struct outbox_redact *redact,
		      bool *ret_done, struct outbox_error *err);

	/* Optional. Keys that wait for their first unfinished delivery, the oldest first, with keyset paging. */
	int (*keys)(struct outbox_store *store, const struct outbox_keys_filter *filter,
		    struct outbox_arena *arena, struct outbox_keys_page *ret_page,
		    struct outbox_error *err);

	/*
	 * Optional, both or none. Correct a message that was delivered nowhere: see struct outbox_amend. What had failed
	 * or waits for a retry is requeued in the same transaction; discarded deliveries stay so. ENOTFOUND; ECONFLICT, with
	 * the delivery that is in the way, when one is delivered (as a dead letter alone does not count), or in flight
	 * while the lease lives, or when none is left to be made. Whoever has read the message already and not sent it
	 * sends what it is now.
	 */
	int (*amend)(struct outbox_store *store, const struct outbox_amend *amend,
		     struct outbox_amended *ret_amended, struct outbox_error *err);

	/* What a message was before each of its amendments, oldest first. None for an unknown id. */
	int (*amendments)(struct outbox_store *store, const char *id, struct outbox_arena *arena,
			  struct outbox_amendment **ret_rows, size_t *ret_count,
			  struct outbox_error *err);

	/*
	 * Optional. The history of a message: its failed attempts, by target, oldest first; none for an unknown id. Of each delivery
	 * the first and the last ones are kept, OUTBOX_ATTEMPTS_KEPT together. They are written by settle_and_claim() in its
	 * transaction, survive a requeue, and go with the delivery; a redaction takes their texts.
	 */
	int (*attempts)(struct outbox_store *store, const char *id, struct outbox_arena *arena,
			struct outbox_attempt **ret_rows, size_t *ret_count,
			struct outbox_error *err);

	/*
	 * Optional. Cancel a scheduled message: see struct outbox_cancel. ENOTFOUND; ECONFLICT, with what is in the way: it
	 * is not scheduled, or due, or being read or sent by a live owner, or was delivered or tried somewhere.
	 * Leaves an audit row for the message and one for each delivery that is discarded. ret_done (may be NULL): false, it
	 * was cancelled before and nothing changed.
	 */
	int (*cancel)(struct outbox_store *store, const struct outbox_cancel *cancel,
		      bool *ret_done, struct outbox_error *err);

	/*
	 * Optional. The messages with a key. The log has no index on keys: it is walked, a bounded part of it with each call.
	 * Messages without a key are never found.
	 */
	int (*find_key)(struct outbox_store *store, const struct outbox_key_search *search,
			struct outbox_arena *arena, struct outbox_key_found *ret_found,
			struct outbox_error *err);
};

/*
 * Optional, all or none: the inbox, a table of a consumer's database. It needs no outbox there and is no part of the
 * schema: init() of the schema makes none, and upgrade(), drop() and truncate() leave it alone. Where there is none, what
 * asks for its rows is ESCHEMA with the remedy.
 */
struct outbox_inbox_ops {
	/* Make it, or find it already there. ESCHEMA: something of this name that is not ours is in the way. */
	int (*init)(struct outbox_store *store, bool *ret_made, struct outbox_error *err);
	/* Remove it with all rows. None: nothing to do. */
	int (*drop)(struct outbox_store *store, struct outbox_error *err);
	/* What init() or drop() would run: as in struct outbox_schema_ops. Needs no store. */
	int (*script)(const char *schema, bool drop, char **ret_sql, struct outbox_error *err);
	/* Cheap, however many rows there are. */
	int (*stats)(struct outbox_store *store, struct outbox_inbox_stats *ret_stats,
		     struct outbox_error *err);
	/* The oldest first, with keyset paging. */
	int (*list)(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		    struct outbox_arena *arena, struct outbox_inbox_page *ret_page,
		    struct outbox_error *err);
	/* At most OUTBOX_INBOX_COUNT_MAX. */
	int (*count)(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		     int64_t *ret_count, struct outbox_error *err);
	/* Remove the oldest rows before filter->before, at most filter->limit of them. */
	int (*prune)(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		     int64_t *ret_removed, struct outbox_error *err);
};

/* The version of this contract. */
#define OUTBOX_STORE_CONTRACT 4

struct outbox_store_ops {
	unsigned contract;          /* OUTBOX_STORE_CONTRACT */
	const char *name;           /* "sqlite" */
	const char *const *schemes; /* NULL-terminated */
	const char *help;           /* one line: the URL's form */

	/*
	 * Connect. Does not need a schema and never creates a database (ENOTFOUND: say `outbox
	 * init`), unless create is true.
	 */
	int (*open)(const struct outbox_store_config *config, bool create,
		    struct outbox_store **ret_store, struct outbox_error *err);
	void (*close)(struct outbox_store *store);
	/* Optional. Would open() understand this URL? ECONFIG or EINVAL with the remedy. Nothing is connected to; files
	 * that it takes secrets from are read. Needs no store. */
	int (*check_url)(const char *url, struct outbox_error *err);

	struct outbox_schema_ops schema;
	struct outbox_lane_ops lane;
	struct outbox_operator_ops operate; /* all NULL: there are none */
	struct outbox_inbox_ops inbox;      /* all NULL: there is none */
};

/* Embed as first member of the driver's struct. open() sets ops. */
struct outbox_store {
	const struct outbox_store_ops *ops;
};

#ifdef __cplusplus
}
#endif

#endif
