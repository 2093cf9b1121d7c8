/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_AUDIT_H
#define STORE_SQLITE_AUDIT_H

#include "store/sqlite/db.h"

struct sqlite_audit_entry {
	const char *actor, *action, *target, *id;
	int64_t seq;
	const char *reason, *detail;
	int64_t at; /* 0: now */
};

/* In the transaction of what it tells about. */
int sqlite_audit_write(struct sqlite_store *s, const struct sqlite_audit_entry *entry,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
