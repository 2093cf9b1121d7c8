/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_REDACT_REDACT_KEY_H
#define OPERATE_REDACT_REDACT_KEY_H

/* Redacting all finished messages of a key. */

#include "operate/bulk.h"

#include <outbox/store.h>

struct redact_key {
	struct outbox_store *store;
	const char *key, *key_like; /* one of the two */
	const char *actor, *reason;
	bool dry_run;
	/* A message that is not finished: a delivery that is in the way. row->target NULL: no target is registered */
	void (*unfinished)(void *context, const struct outbox_delivery *row);
	void *context;
	/* what was found */
	int64_t searched;
	int64_t done;   /* redacted, or would be */
	int64_t left;   /* not finished */
	int64_t before; /* redacted before: a glob may match what became of their keys */
	bool ended;     /* early */
};

/*
 * Walk the log, each message a transaction of its own. What is redacted has another key and is not found again, so that
 * the same call goes on where one was interrupted. Messages that are published meanwhile may be missed.
 */
int redact_key(struct redact_key *work, const struct bulk *bulk,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
