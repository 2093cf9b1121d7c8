/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_CONTRACT_H
#define TRANSPORT_CONTRACT_H

/*
 * The contract of include/outbox/transport.h as tests. A driver's test is a fixture: how to make a
 * place for it, break that place, and read back what arrived there, written without the driver's
 * help. docs/internals/transports.md explains it field by field.
 */

#include <outbox/arena.h>
#include <outbox/transport.h>

#include <stdbool.h>
#include <stddef.h>

/* What a driver cannot do; the cases that need it are left out, and named. */
#define CONTRACT_NO_READ_BACK 1u  /* nothing can be read back (null:) */
#define CONTRACT_NO_OUTAGE 2u     /* it is never out of reach */
#define CONTRACT_NO_ENVELOPE 4u   /* messages are not encoded */
#define CONTRACT_NO_MISSING 8u    /* there is no URL of a place that does not exist */
#define CONTRACT_NOT_BUILT_IN 16u /* a program registers it (memory:) */

#define CONTRACT_DEADLINE (20 * OUTBOX_SECONDS)

/* What arrived, in order of arrival; all in the arena. */
struct arrival {
	const char *id;
	const void *body; /* the payload as the application gave it */
	size_t size;
	struct outbox_header *headers; /* at least those of the application */
	size_t n_headers;
};

struct arrivals {
	struct outbox_arena *arena;
	struct arrival *items;
	size_t count, capacity;
};

/* A URL that open() must refuse with ECONFIG and an error that contains `names`. */
struct bad_url {
	const char *url;
	const char *names;
};

struct transport_fixture {
	const char *name;
	const struct outbox_transport_ops *ops;
	unsigned flags; /* CONTRACT_NO_* */

	/* NULL when it can run, else why it is skipped (exit status 77). Optional. */
	const char *(*unavailable)(void);

	/* Before and after each case: an empty, working place. */
	void *(*setup)(void);
	void (*teardown)(void *state);

	/* The URL of that place, and the driver's context (optional). */
	const char *(*url)(void *state);
	void *(*context)(void *state);

	const struct bad_url *bad_urls; /* ends with { NULL } */

	/* A well-formed URL of a place that does not exist, and the status of connecting to it. */
	const char *(*missing_url)(void *state);
	int missing_status;

	/* The place goes away (connect and publish fail) and comes back with what it kept. */
	void (*outage)(void *state, bool on);
	/* The place goes away in the middle of a batch: after about n of the messages below. */
	void (*outage_after)(void *state, size_t n);

	/* Did anybody talk to the place? Optional; proves that open() does no I/O. */
	bool (*touched)(void *state);

	/* Add everything that arrived so far. */
	void (*read_back)(void *state, struct arrivals *arrivals);
};

/* Run the suite; the result is main()'s. */
int transport_contract_run(const struct transport_fixture *fixture);

/* For read_back(): add a copy, then its headers. */
void arrivals_add(struct arrivals *arrivals, const char *id, const void *body, size_t size);
void arrivals_header(struct arrivals *arrivals, const char *name, const char *value);

#endif
