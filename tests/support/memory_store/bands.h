/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_STORE_BANDS_H
#define MEMORY_STORE_BANDS_H

/* Which bands of priority a target gets when it is put. */

#include "memory_store/db.h"

/* target.c: another routing, in its canonical text; the next version. */
int memory_target_route(struct memory_target *target, const char *text,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What the bands of a target will be that is put; known NULL: it is new. */
int memory_bands_plan(const struct memory_db *db, const struct outbox_target_def *def,
		      const struct memory_target *known, struct band_plan *ret_plan,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
/* It was put. */
int memory_bands_set(struct memory_db *db, const struct outbox_target_def *def,
		     struct memory_target *target, const struct band_plan *plan,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;
int memory_bands(struct memory_store *s, const char *target, unsigned *ret_bands,
		 struct outbox_error *err);

#endif
