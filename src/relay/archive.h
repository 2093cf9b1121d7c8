/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_ARCHIVE_H
#define RELAY_ARCHIVE_H

/*
 * A file of CloudEvents, one JSON object a line, compressed with zstd. It is written under another name
 * and appears under its own only when every byte is on the disk; it never replaces a file.
 */

#include <outbox/store.h>

struct archive;

/* ECONFLICT when path exists. then: what a failure means, "; nothing was purged"; outlives the archive. */
int archive_new(const char *path, const char *then, struct archive **ret_archive,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Messages that fit no CloudEvents JSON (broken JSON, malformed rows) are kept too: as base64, marked. */
int archive_add(struct archive *archive, const struct outbox_claimed *message,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* End, sync, rename into place, sync the folder. */
int archive_commit(struct archive *archive, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Removes the unfinished file unless it was committed. NULL is legal. */
struct archive *archive_free(struct archive *archive);

#endif
