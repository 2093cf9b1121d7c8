/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_HOLDS_H
#define OPERATE_HOLDS_H

/* Which targets keep messages in the log that are old enough to go. */

#include <outbox/store.h>

#define HOLDS_MAX 10000 /* deliveries of a target that are counted */

struct hold {
	const char *target; /* as in stats */
	int64_t unfinished; /* deliveries that this target still has to receive, of messages that are old enough */
	int64_t failed;     /* that are kept because they failed */
	outbox_time oldest; /* when the oldest of these messages was published */
	bool more;          /* there are more than were counted */
};

struct holds {
	size_t count; /* of targets that hold something back */
	struct hold *list;
};

/* By delivered_before and failed_before; delivered_before 0: nothing is held back. stats: of this store, just now. */
int holds_find(struct outbox_store *store, const struct outbox_purge *purge,
	       const struct outbox_stats *stats, struct outbox_arena *arena,
	       struct holds *ret_holds, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
