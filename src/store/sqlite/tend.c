/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checkpoints. None of our connections checkpoints on its own (see open.c); the one whose worker has
 * nothing else to do does it here. SQLite's own checkpoint lock keeps it to one at a time: the others
 * get BUSY and leave it at that.
 *
 * PASSIVE waits for nobody. A WAL that has grown large all the same (readers that were always in the
 * way) is cut back with TRUNCATE, for which writers wait a moment.
 */
#include "store/sqlite/tend.h"
#include "store/sqlite/db.h"
#include "store/sqlite/ops.h"

#include <sys/stat.h>

#define WAL_SMALL ((int64_t)1 << 20)
#define WAL_LARGE ((int64_t)64 << 20)

int64_t sqlite_wal_size(struct sqlite_store *s)
{
	const char *file = sqlite3_db_filename(s->db, "main");
	struct stat st;

	/* Only the size: opening and closing the file ourselves would drop SQLite's locks. */
	if (!file || !file[0] || stat(sqlite3_filename_wal(file), &st) != 0)
		return 0;
	return st.st_size;
}

int sqlite_maintain(struct outbox_store *store, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int64_t size = sqlite_wal_size(s);
	int r, rc, frames = 0, copied = 0;

	if (size < WAL_SMALL)
		return OUTBOX_OK;
	/* The -wal must outlive the file: it may be all that is left. */
	r = sqlite_in_place(s, err);
	if (r != OUTBOX_OK)
		return r;
	rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
	/* Cutting the file holds the write lock. It is only worth that when it can be done at once: with a
	 * reader in the way it would keep every publisher waiting for as long as we wait. */
	if (rc == SQLITE_OK && size >= WAL_LARGE && copied == frames) {
		sqlite3_busy_timeout(s->db, 0);
		rc = sqlite3_wal_checkpoint_v2(s->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
		sqlite3_busy_timeout(s->db, s->busy_ms);
	}
	if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED)
		return OUTBOX_OK;
	return sqlite_fail(s->db, rc, "checkpoint", err);
}
