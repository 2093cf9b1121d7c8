/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_ARCHIVE_READER_H
#define OPERATE_ARCHIVE_READER_H

/* The lines of an archive: what archive.h wrote, or the same as plain JSON lines. */

#include <outbox/arena.h>
#include <outbox/store.h>

#include <stdbool.h>
#include <stdint.h>

struct archive_reader;

int archive_open(const char *path, struct archive_reader **ret_reader,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * The next line, without its end, until the next call; *ret_line is NULL behind the last one. EPROTO: the
 * file is damaged or cut off; the error says behind which line and at which byte.
 */
int archive_next(struct archive_reader *reader, const char **ret_line, size_t *ret_size,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Lines that archive_next() gave. */
int64_t archive_lines(const struct archive_reader *reader);

struct archive_reader *archive_close(struct archive_reader *reader);

/*
 * The message of a line: what the archive kept of it, payload included. ret_malformed: it made no sense when
 * it was archived and was never delivered. Its seq is the place it had in its log, 0: not known. EPROTO: this line is
 * not one of ours.
 */
int archive_message(const char *text, size_t size, struct outbox_arena *arena,
		    struct outbox_claimed *ret_found, bool *ret_malformed,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
