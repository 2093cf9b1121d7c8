/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_PICTURE_H
#define TORTURE_PICTURE_H

/*
 * Everything that is in a database, as text, with SQLite's own opinion of the file at the end: two
 * databases agree when their texts do.
 *
 * Making one costs a new connection, the schema and integrity_check, which is more than the run that is
 * looked at. So texts are kept with the bytes of the files that they were made of. The same bytes (of the
 * database, its WAL, its index and its journal, compared one by one) are the same picture; there are few
 * that differ, since the runs of a case go the same way and the world's random numbers do, too.
 */

#include "world.h"

struct picture {
	const char *text;
	size_t size;
};

/* Lives until picture_forget(). */
struct picture picture_take(struct world *w);

bool picture_same(struct picture a, struct picture b);
/* integrity_check found nothing. */
bool picture_sound(struct picture picture);

void picture_forget(void);
/* How many were asked for, and how many of these were made. */
void picture_counts(long *ret_asked, long *ret_made);

#endif
