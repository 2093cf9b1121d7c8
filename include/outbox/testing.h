/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_TESTING_H
#define OUTBOX_TESTING_H

/*
 * An outbox in memory, for your own tests: no database, no broker, no waiting.
 *
 * Your code publishes in a transaction of the memory store, a relay of your test delivers to the memory
 * broker, and the test looks at what arrived. Time stands still until the test moves it, so drive the relay
 * with outbox_relay_run_once() and a step of the clock where a retry or a deferred message is due.
 *
 * Link with liboutbox-testing (`pkg-config --cflags --libs outbox-testing`). It is for tests only: nothing is
 * durable, and running out of memory ends the process. tests/system/headers/testing_test.c is an example.
 */

#include <outbox/clock.h>
#include <outbox/error.h>
#include <outbox/message.h>
#include <outbox/relay.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The store's URL and the targets' `to`, where outbox_testing_register() has been called. */
#define OUTBOX_TESTING_STORE "memory:test"
#define OUTBOX_TESTING_TO "memory:"

struct outbox_testing;    /* an empty store, a broker and a clock */
struct outbox_testing_tx; /* a transaction of the application */

int outbox_testing_new(struct outbox_testing **ret_testing,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Relays and registries that use it are freed before. NULL is legal. */
struct outbox_testing *outbox_testing_free(struct outbox_testing *testing);

/* Make OUTBOX_TESTING_STORE and OUTBOX_TESTING_TO known to a registry. */
int outbox_testing_register(struct outbox_testing *testing, struct outbox_registry *registry,
			    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- publishing ---------------------------------------------------------------------------- */

struct outbox_testing_tx *outbox_testing_begin(struct outbox_testing *testing);
/* Checks the message as publishing on a database does. */
int outbox_testing_publish(struct outbox_testing_tx *tx, const struct outbox_message *message,
			   struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Both free the transaction and return NULL; NULL is legal. */
struct outbox_testing_tx *outbox_testing_commit(struct outbox_testing_tx *tx);
struct outbox_testing_tx *outbox_testing_rollback(struct outbox_testing_tx *tx);

/* ---- what the broker got ------------------------------------------------------------------- */

struct outbox_testing_record {
	const char *id, *type;
	const char *key;  /* NULL: it has none */
	const void *body; /* in the target's envelope; by default the payload */
	size_t size;
	const char *content_type;
	const struct outbox_header *headers;
	size_t n_headers;
};

/* How many messages arrived, and the i-th of them. Its text lives as long as testing. EINVAL behind the last. */
size_t outbox_testing_count(struct outbox_testing *testing);
int outbox_testing_at(struct outbox_testing *testing, size_t i,
		      struct outbox_testing_record *ret_record,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- time ---------------------------------------------------------------------------------- */

/* For outbox_relay_config.clock. It stands at 2026-01-01 00:00 UTC until it is moved. */
struct outbox_clock *outbox_testing_clock(struct outbox_testing *testing);
void outbox_testing_step(struct outbox_testing *testing, outbox_time step);

#ifdef __cplusplus
}
#endif

#endif
