/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_COURIER_H
#define TORTURE_COURIER_H

/* A transport's life: open, connect, two batches with a disconnect between them, close. */

#include <outbox/transport.h>

#include <stdbool.h>

#define COURIER_ITEMS 6
#define COURIER_BAD 2 /* this one is not the JSON that it claims to be */

struct courier {
	const char *url;
	const struct outbox_transport_ops *ops;
	void *context;
	int envelope; /* enum outbox_envelope */
	bool rejects; /* the bad one is REJECTED; else it is ACKED like all others */
	/* After each publish(): is the item where the broker keeps it? durable: and stays there. */
	bool (*arrived)(const char *id, bool durable);
};

/* Run it with the faults that are planned, then without: in the end every message has arrived. */
void courier_run(const struct courier *courier);

#endif
