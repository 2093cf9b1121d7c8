/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REDIS_FAKE_CASE_H
#define REDIS_FAKE_CASE_H

/* What the tests with the fake server share. */

#include "fake.h"
#include "transport_case.h"

#define SHORT (400 * OUTBOX_MILLISECONDS) /* for those who wait in vain */
#define ID "$3\r\n1-0\r\n"

/* A batch of n, of three types in turn, each with a key of its own. Free c->arena afterwards. */
void begin(struct transport_case *c, size_t n);

/* They all have one key: a script. */
void use_one_key(struct transport_case *c);

struct outbox_transport *open_to(struct transport_case *c, struct fake *fake, const char *options);

/* Connect to such a server and publish the batch; returns the status of the first that fails. */
int talk(struct transport_case *c, const struct fake_script *script, const char *options,
	 outbox_time limit, struct outbox_error *err);

/* How many of the batch have this verdict? */
size_t count(const struct transport_case *c, int verdict);

#endif
