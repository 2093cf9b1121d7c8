/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

/*
 * A simulated world around the relay's own code. One seed decides everything: what is published, when
 * transactions commit, which calls fail and how, who crashes, when time passes. The same seed gives the
 * same run, event by event, on every compiler.
 *
 * The relay's workers are the real ones (src/relay), and so are decide_*() and the lanes. The store is
 * the memory store, which passes the very contract suite that the real stores pass, behind a decorator
 * that loses replies, delays calls and executes them after their client has gone. Brokers are
 * simulated, with the habits of real ones.
 */

#include "base/random.h"
#include "frozen_clock.h"
#include "memory_store/db.h"
#include "relay/relay.h"

#include <setjmp.h>

#define SIM_MESSAGES 32
#define SIM_TARGETS 2
#define SIM_RELAYS 3
#define SIM_WRITERS 3
#define SIM_GHOSTS 8
#define SIM_LEASE (5 * OUTBOX_SECONDS)

/* Faults that a seed can switch on. Each is counted when it happens. */
#define SIM_FAULTS(X)                                                            \
	X(STORE_FAIL, "store call fails before it is applied")                   \
	X(STORE_LOST, "store call is applied, its reply is lost")                \
	X(STORE_GHOST, "store call is executed after its client gave up")        \
	X(STORE_BUSY, "store is busy")                                           \
	X(STORE_SLOW, "others work during a store call")                         \
	X(CLOCK_JUMP, "store clock jumps")                                       \
	X(WRITER_LATE, "writer commits late")                                    \
	X(WRITER_ROLLBACK, "writer rolls back")                                  \
	X(WRITER_SAVEPOINT, "writer rolls back to a savepoint")                  \
	X(RELAY_CRASH, "relay dies between steps")                               \
	X(RELAY_CRASH_CALL, "relay dies in a call")                              \
	X(RELAY_PAUSE, "relay is stopped and goes on later")                     \
	X(RELAY_DRAIN, "relay shuts down gracefully")                            \
	X(BROKER_OUTAGE, "broker is away")                                       \
	X(BROKER_RESTART, "broker restarts and drops what it did not confirm")   \
	X(BROKER_NACK, "broker refuses a message for now")                       \
	X(BROKER_REJECT, "broker refuses a message for good")                    \
	X(BROKER_RETURN, "message is returned as unroutable, then acknowledged") \
	X(BROKER_ACK_LOST, "acknowledgement is lost, connection stays")          \
	X(BROKER_CUT, "connection is cut in a batch")                            \
	X(BROKER_BLOCK, "broker blocks until the deadline")                      \
	X(BROKER_SLOW, "others work while a batch is on the wire")               \
	X(BROKER_DEDUPE, "broker drops a duplicate")                             \
	X(POISON_KILLS, "message kills the relay that sends it")                 \
	X(POISON_CUTS, "message makes the broker cut the connection")            \
	X(OPERATOR_PAUSE, "operator pauses a target")                            \
	X(OPERATOR_REQUEUE, "operator requeues")                                 \
	X(OPERATOR_DISCARD, "operator discards")                                 \
	X(OPERATOR_DEFER, "operator defers")                                     \
	X(OPERATOR_PURGE, "purge runs")                                          \
	X(DUE, "message is due later")                                           \
	X(EXPIRY, "message expires")                                             \
	/* publisher confirms; these draw from a stream of their own */          \
	X(CONFIRM_REORDERED, "confirm overtakes that of an earlier message")     \
	X(CONFIRM_MULTIPLE, "one ack confirms several messages")                 \
	X(CONFIRM_NACKS, "one nack refuses several messages")                    \
	X(CONFIRM_RETURN, "ack follows a return, by its tag")                    \
	X(CONFIRM_CUT, "connection is cut in the middle of confirms")            \
	X(CONFIRM_LATE, "confirm comes after the deadline, in the next batch")   \
	X(CONFIRM_SLOW, "others work between two confirms")                      \
	X(CONFIRM_REPEATED, "confirm comes twice")                               \
	X(CONFIRM_UNKNOWN, "confirm for what was never sent")                    \
	/* numbers; these draw from another stream */                            \
	X(COUNTER_SET, "the log's counter is set")                               \
	X(OPERATOR_REBASE, "operator rebases")                                   \
	/* where messages are due later; draws nothing for itself */             \
	X(CANCEL, "scheduled message is cancelled")

enum sim_fault {
#define X(name, text) FAULT_##name,
	SIM_FAULTS(X)
#undef X
		SIM_N_FAULTS
};

#define FAULT_CONFIRM_FIRST FAULT_CONFIRM_REORDERED
#define FAULT_COUNTER_FIRST FAULT_COUNTER_SET

/* Premises of the invariants: each must be seen, or the proof is empty. */
#define SIM_PREMISES(X)                                                                    \
	X(DELIVERED, "a delivery was settled as delivered")                                \
	X(DUPLICATE, "a message was accepted twice, explained")                            \
	X(FENCED, "a stale owner's settlement was refused")                                \
	X(TAKEOVER, "a lane was taken with messages in flight")                            \
	X(CAUTIOUS, "a lane became cautious")                                              \
	X(CHARGED, "a retry was charged")                                                  \
	X(UNCHARGED, "an unknown outcome was not charged")                                 \
	X(USED_UP, "a delivery failed because its attempts were used up")                  \
	X(REJECTED, "a delivery failed because it was rejected")                           \
	X(EXPIRED, "a delivery failed because it expired")                                 \
	X(PARKED, "a delivery was parked behind its key")                                  \
	X(RETURNED, "a delivery was returned uncharged")                                   \
	X(DEFERRED, "a delivery was deferred")                                             \
	X(REPEATED, "a settlement was repeated with the same token")                       \
	X(JOINED, "several lanes settled and claimed in one call")                         \
	X(ORDERED, "a message was accepted after an earlier one of its key")               \
	X(LATE_COMMIT, "a lower seq became visible after a higher one was settled")        \
	X(PURGED, "a message was purged")                                                  \
	X(UNPASSED, "a message was purged that a lane without an interest had not passed") \
	X(BEFORE_START, "a message was purged that is older than a target's start")        \
	X(REQUEUED, "a failed delivery was requeued")                                      \
	X(REFUSED, "an operator was refused because a message is being sent")              \
	X(DRAINED, "a relay drained with messages in flight")                              \
	X(POISON_FAILED, "a poison message failed in the end")                             \
	X(WON_ONCE, "two operators requeued one delivery and one won")                     \
	X(NUMBERED_AGAIN, "a message got a number that another one had")                   \
	X(LANE_REFUSED, "a lane was refused, since its position and the log do not agree") \
	X(REFUSED_STILL, "a lane was refused again when the counter had come past it")     \
	X(REBASED, "lanes were rebased")                                                   \
	X(CANCELLED, "a message was cancelled")                                            \
	X(CANCELLED_LATER, "a target was registered that would have got a cancelled one")

enum sim_premise {
#define X(name, text) PREMISE_##name,
	SIM_PREMISES(X)
#undef X
		SIM_N_PREMISES
};

/* Edges of the lifecycle that were seen, by state before and after. */
#define SIM_STATES 6

struct sim_totals {
	uint64_t faults[SIM_N_FAULTS];
	uint64_t premises[SIM_N_PREMISES];
	uint64_t edges[SIM_STATES][SIM_STATES];
	uint64_t events, seeds;
};

/* A message as the world knows it: the ledger that the store is compared with. */
struct sim_message {
	int64_t seq;
	char id[37];
	char key[8]; /* "": none */
	char payload[24];
	outbox_time event_time, due_at, expires_at;
	outbox_time published_at; /* store time */
	bool committed, rolled_back, purged, cancelled;
	bool again;    /* its number was another one's before */
	bool unpassed; /* before a purge: a target that does not get it has not passed it either */
	bool before[SIM_TARGETS]; /* a target that starts now was registered when it was there */
	const char *type;
	int slot;
	enum { TAME, KILLS, CUTS, REJECTED } nature;
};

/* One message x one target, as the world knows it. */
struct sim_delivery {
	int state, attempts;  /* as last seen in the store */
	int accepted;         /* copies that the broker holds */
	int unconfirmed;      /* of these, copies whose sender was not told */
	int explained;        /* events that allow one more copy */
	bool acked_unsettled; /* confirmed to relay `by`, not yet settled */
	int by, by_life;
	int verdict;             /* of the last try in the claim in flight */
	bool tried, alone;       /* in the claim in flight */
	bool was_accepted;       /* once, also if the broker lost it later */
	bool rescheduled;        /* by an operator: due_at no longer counts */
	bool excused;            /* failed, deferred or discarded once: its key may have gone on */
	bool died_alone;         /* alone in flight when its lane was taken: may be charged */
	outbox_time not_before;  /* store time of its next attempt */
	outbox_time finished_at; /* store time of the settlement that finished it */
};

struct sim_relay {
	struct outbox_relay *relay; /* NULL: not running */
	struct worker *workers[SIM_TARGETS];
	outbox_time next[SIM_TARGETS];
	int number, life; /* relay-2.5: the fifth process of place 2 */
	outbox_time drain_until;
	bool starting, stopped, busy, doomed, draining;
};

struct sim_ghost {
	bool waiting;
	outbox_time at;
	struct outbox_settle_and_claim request;
	struct outbox_settlement settled[SIM_MESSAGES];
	char target[8], owner[32];
};

struct sim_writer {
	struct memory_tx *tx;
	int messages[8];
	size_t n, savepoint, at_savepoint;
	bool has_savepoint;
	outbox_time not_before;
};

struct sim_broker {
	bool away;
	outbox_time until;
	bool dedupes;
	int epoch;     /* its outages: connections do not survive one */
	bool confirms; /* by numbers, several at once, in any order; else one answer a message */
	bool by_id;    /* its driver knows returned messages by their id; else by their tag */
};

struct sim {
	uint64_t seed, hash;
	struct random_state random;
	struct random_state past;  /* for the log's counter: likewise */
	struct random_state wire;  /* for confirms: a seed without them is what it was before */
	struct random_state paths; /* for routes, likewise */
	struct frozen_clock clock; /* the store's and the relays'; jumps move wall only */
	bool enabled[SIM_N_FAULTS];
	int percent; /* how often a fault happens where it can */
	bool healing, tracing, hashing, failed;
	bool canary; /* the brokers lie: the simulator must notice */
	outbox_time start_mono;
	struct sim_relay *current; /* whose step is under way */
	int64_t highest_settled;
	const char *skip; /* faults switched off by the shrinker, "0110..." or NULL */
	size_t events, max_events;
	size_t limit; /* the shrinker's end of chaos; 0: the seed's own */
	bool again;   /* the receipt under way is a repeated one */

	int lanes, n_relays, n_targets, n_keys, n_messages_wanted;
	bool hold, unordered_writers, jumped;
	struct outbox_policy policy;
	size_t batch;

	struct memory_db *db;
	struct outbox_store *store; /* the world's own, without faults */
	struct outbox_registry *registry;
	struct outbox_arena *arena;
	struct sim_message messages[SIM_MESSAGES];
	size_t n_messages;
	struct sim_delivery deliveries[SIM_TARGETS][SIM_MESSAGES];
	struct sim_relay relays[SIM_RELAYS];
	struct sim_writer writers[SIM_WRITERS];
	struct sim_broker brokers[SIM_TARGETS];
	enum { GETS_ALL, GETS_SOME, GETS_NOTHING } gets[SIM_TARGETS];
	bool starts_now[SIM_TARGETS];
	struct sim_ghost ghosts[SIM_GHOSTS];
	bool paused[SIM_TARGETS];
	bool refused[SIM_TARGETS][4]; /* a lane: until it is rebased */
	bool answered;                /* the operator has rebased while the world heals */
	int64_t holders[SIM_TARGETS][4]; /* token of each lane's last receipt, as its owners were told */
	size_t audits;
	int depth; /* of interludes */
	char violation[512];
	jmp_buf out; /* a violation ends the run wherever it is found */
	struct sim_totals *totals;
};

extern const char *const sim_fault_texts[], *const sim_fault_names[];
extern const char *const sim_premise_texts[], *const sim_premise_names[];

static inline outbox_time sim_now(struct sim *s)
{
	return s->clock.base.wall(&s->clock.base);
}

static inline outbox_time sim_mono(struct sim *s)
{
	return s->clock.base.mono(&s->clock.base);
}

#define SIM_START_MONO(s) ((s)->start_mono)

/* ---- chance ------------------------------------------------------------------------------- */

/* In [0, n). */
uint64_t sim_pick(struct sim *sim, uint64_t n);
bool sim_chance(struct sim *sim, int percent);
/* Does this fault happen here and now? Counts it when it does. */
bool sim_fault(struct sim *sim, enum sim_fault fault);
/* The same for confirms. Whoever asks counts it when it has had its effect. */
uint64_t wire_pick(struct sim *sim, uint64_t n);
bool wire_happens(struct sim *sim, enum sim_fault fault, int percent);

/* ---- story -------------------------------------------------------------------------------- */

/* Everything that happens goes through here: into the hash, and into the story when one is told. */
void sim_say(struct sim *sim, const char *format, ...) OUTBOX_PRINTF(2, 3);
/* An invariant does not hold. Ends the run. */
void sim_violation(struct sim *sim, const char *invariant, const char *format, ...)
	OUTBOX_PRINTF(3, 4);
void sim_premise(struct sim *sim, enum sim_premise premise);

/* ---- the parts ---------------------------------------------------------------------------- */

struct sim_message *sim_message(struct sim *sim, int64_t seq); /* NULL: unknown */
struct sim_delivery *sim_delivery(struct sim *sim, int target, int64_t seq);
int sim_target(const char *name); /* "t0" -> 0 */
struct memory_target *sim_db_target(struct sim *sim, int target);
/* Is the message meant for this target? */
bool sim_gets(const struct sim *sim, int target, const struct sim_message *message);
/* Is the relay whose step is under way the last that took the message's lane? */
bool sim_owns(struct sim *sim, int target, int64_t seq);

void writers_act(struct sim *sim);
/* True when nothing more will be published. */
bool writers_done(struct sim *sim);

void relays_start(struct sim *sim, int place);
void relays_end(struct sim *sim, int place, const char *how);
bool relays_step(struct sim *sim);        /* one step of one that is due; false: none is */
outbox_time relays_next(struct sim *sim); /* mono */
void relays_trouble(struct sim *sim);     /* crash, stop, go on, drain, start */
struct sim_relay *relays_find(struct sim *sim, const char *owner);

void operators_act(struct sim *sim);
/* Set the log's counter, or rebase what is refused since somebody did. */
void operators_number(struct sim *sim);
void operators_answer(struct sim *sim); /* while healing: rebases refused lanes, once */
void operators_heal(struct sim *sim);

extern const struct outbox_store_ops sim_store_ops;
/* The same with every op filled in, as the registry demands: what the relay never calls is the memory store's. */
const struct outbox_store_ops *sim_full_ops(void);
void ghosts_act(struct sim *sim, bool all);

extern const struct outbox_transport_ops sim_transport_ops;
void brokers_trouble(struct sim *sim);
void brokers_heal(struct sim *sim);

/* Others do something while a call is under way. */
void sim_interlude(struct sim *sim, struct sim_relay *busy);
void sim_act(struct sim *sim);

/* ---- checks ------------------------------------------------------------------------------- */

enum check_by { BY_RELAY = 1, BY_OPERATOR, BY_PURGE, BY_WRITER };

/* After something changed the store: every delivery's step is one that the lifecycle allows. */
void check_states(struct sim *sim, enum check_by by);
/* Does this settlement follow from what the brokers said? Called before the store takes it. */
void check_settlement(struct sim *sim, const struct outbox_settle_and_claim *request);
void check_claim(struct sim *sim, const struct outbox_settle_and_claim *request,
		 const struct outbox_claim *claim);
/* A relay puts this on the wire; and the broker keeps it. */
void check_sent(struct sim *sim, int target, const struct outbox_item *item);
void check_accepted(struct sim *sim, int target, const struct outbox_item *item);
/* What the store said to who works on a lane: once it is refused it stays so until it is rebased. */
void check_refusal(struct sim *sim, int target, int lane, int status);
/* The lane got a new owner: what was confirmed there and not settled may come again. */
void check_lost(struct sim *sim, int target, int lane);
void check_before_purge(struct sim *sim);
void check_purge(struct sim *sim, const struct outbox_purge *purge);
/* Everything is finished and old: everything must go. */
void check_retention(struct sim *sim);
void check_end(struct sim *sim);

/* Run one seed. False: an invariant was violated (sim->violation). */
bool sim_run(struct sim *sim, uint64_t seed, struct sim_totals *totals);

#endif
