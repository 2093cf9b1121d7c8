/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_DEAD_LETTER_H
#define RELAY_DEAD_LETTER_H

/* Headers of a dead letter. */

#include <outbox/arena.h>
#include <outbox/store.h>

/* Make a claimed message that failed elsewhere one that can be sent; others are left as they are. */
int dead_letter_headers(struct outbox_claimed *claimed, struct outbox_arena *arena,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
