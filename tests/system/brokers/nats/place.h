/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NATS_PLACE_H
#define NATS_PLACE_H

/* A stream of its own on the test's server, and what arrived there, read with the client library alone. */

#include <stdbool.h>
#include <stddef.h>

#include <nats/nats.h>

struct place;

#define PLACE_HEADERS_MAX 160

struct place_message {
	const char *id;
	const void *body;
	size_t size;
	const char *names[PLACE_HEADERS_MAX], *values[PLACE_HEADERS_MAX];
	size_t n_headers;
};

/* The server's port, from the environment. */
int place_port(void);

/* A stream with subjects <name>.>; fails the test when it cannot. */
struct place *place_new(void);
struct place *place_new_with(void (*change)(jsStreamConfig *config));
void place_free(struct place *place);
const char *place_name(const struct place *place);

/* Everything in the stream, in order. */
void place_read(struct place *place,
		void (*arrived)(void *context, const struct place_message *message), void *context);
size_t place_count(struct place *place);

#endif
