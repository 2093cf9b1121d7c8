/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_STORE_AMEND_H
#define MEMORY_STORE_AMEND_H

/* Corrections: see amend.c. */

#include <outbox/store.h>

struct memory_message;
struct memory_store;
struct memory_target;

int memory_amend(struct memory_store *s, const struct outbox_amend *amend,
		 struct outbox_amended *ret_amended, struct outbox_error *err);
int memory_amendments(struct memory_store *s, const char *id, struct outbox_arena *arena,
		      struct outbox_amendment **ret_rows, size_t *ret_count,
		      struct outbox_error *err);
int memory_cancel(struct memory_store *s, const struct outbox_cancel *cancel, bool *ret_done,
		  struct outbox_error *err);
/* What was cancelled and would be this target's now is discarded there, too. */
void memory_cancel_for(struct memory_store *s, struct memory_target *target);
/* Forget what a message was before it was amended. */
void memory_amended_free(struct memory_message *row);

/* log.c: a row that is in no log. */
struct memory_message *memory_log_copy(const struct outbox_message *message, const char *id);
void memory_log_free(struct memory_message *row);

/* act.c: do it to one delivery, whatever its state. */
void memory_act_change(struct memory_store *s, struct memory_target *target,
		       struct memory_message *row, const struct outbox_act *act, outbox_time now);

#endif
