/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_BANDS_H
#define STORE_SQLITE_BANDS_H

/* Which bands of priority a target gets when it is put; within target_put()'s transaction. */

#include "core/bands.h"
#include "store/sqlite/db.h"

struct sqlite_bands {
	char name[OUTBOX_TARGET_NAME_MAX + 1]; /* whose band it was */
	struct band_state known;
	bool there;
	struct band_plan plan; /* from now on */
	int64_t log_end;
	int64_t start; /* a new one starts behind this place; 0: as it says itself */
};

int sqlite_bands_plan(struct sqlite_store *s, const struct outbox_target_def *def,
		      struct sqlite_bands *b, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* It was put: note its family, and end those of its bands that it had until now. */
int sqlite_bands_note(struct sqlite_store *s, const struct outbox_target_def *def,
		      const struct sqlite_bands *b, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
