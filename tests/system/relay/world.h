/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_RELAY_WORLD_H
#define TESTS_RELAY_WORLD_H

/*
 * A world for relay tests: a store, brokers in memory, a clock that stands still, and relays whose
 * workers are stepped by hand. Time passes only in world_run(), from one thing to do to the next, so
 * a test of an hour's back-off takes a millisecond and gives the same result each time.
 *
 * The store is the memory store, SQLite in a temporary file when the program's first argument is
 * "sqlite", or a schema of its own in the database that OUTBOX_TEST_POSTGRES names when it is
 * "postgres": every rule is shown on each.
 */

#include "base/random.h"
#include "base/unit_test.h"
#include "frozen_clock.h"
#include "memory_store/memory.h"
#include "memory_transport/memory.h"
#include "relay/relay.h"

#define WORLD_RELAYS 4
#define WORLD_BROKERS 2

struct world {
	struct frozen_clock clock;
	struct random_state random;
	char url[300], folder[200];
	struct memory_db *db;       /* NULL on the others */
	struct outbox_store *store; /* the test's own connection */
	struct outbox_arena *arena;
	struct memory_broker *brokers[WORLD_BROKERS];
	struct outbox_registry *registries[WORLD_BROKERS]; /* "memory:" is broker i */
	struct outbox_relay *relays[WORLD_RELAYS];
	bool stopped[WORLD_RELAYS]; /* SIGSTOP: not stepped, but alive */
	outbox_time poll_max[WORLD_RELAYS];
	char log[16384]; /* what the relays said */
};

enum world_kind { WORLD_MEMORY, WORLD_SQLITE, WORLD_POSTGRES };
extern enum world_kind world_kind;

struct world *world_new(int lanes);
void world_free(struct world *world);

/* A configuration with one target "events" to broker 0, batch 10, lease 15 s; change what you need. */
struct outbox_relay_config world_config(struct world *world, struct outbox_target_config *target);
/* The same with the system's clock, for real threads. */
struct outbox_relay_config world_threaded(struct world *world, struct outbox_target_config *target);

/* Start relay i with it. */
void world_relay(struct world *world, int i, const struct outbox_relay_config *config);
/* The same with the plain configuration. */
void world_relay_plain(struct world *world, int i);
/* The process dies: nothing is settled, nothing released. */
void world_kill(struct world *world, int i);
/* Shut down gracefully: steps until it has left (or limit of time passes). */
void world_drain(struct world *world, int i, outbox_time timeout);

struct worker *world_worker(struct world *world, int relay);

/* Let time pass; relays are stepped whenever they want to be. */
void world_run(struct world *world, outbox_time duration);
/* Step without letting time pass, until nobody has anything to do now. */
void world_settle(struct world *world);

/* Publish; returns its seq. data NULL: "{}". */
int64_t world_publish(struct world *world, const char *type, const char *key, const char *data);
int64_t world_publish_message(struct world *world, const struct outbox_message *message);
void world_publish_many(struct world *world, int n, int keys);

/* The delivery of the message at seq for the target. Fails the test when there is none. */
struct outbox_delivery world_delivery(struct world *world, const char *target, int64_t seq);
void world_assert(struct world *world, const char *target, int64_t seq, int state, int why,
		  int attempts);
struct outbox_target_stats world_stats(struct world *world, const char *target);
/* Requeue, discard ... by seq; returns how many were changed. */
size_t world_act(struct world *world, int action, const char *target, int64_t seq, outbox_time until);

/* What arrived at broker 0: seqs in order of arrival as text "1 2 3". */
const char *world_arrived(struct world *world, int broker);
/* First arrivals per key ascend. */
void world_assert_order(struct world *world, int broker);

struct outbox_relay_counts world_counts(struct world *world, int relay);

int world_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
	       size_t n_tests);
#define WORLD_MAIN(argc, argv, name, tests) \
	world_main(argc, argv, name, tests, sizeof(tests) / sizeof((tests)[0]))

#endif
