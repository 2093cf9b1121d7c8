/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_LINES_LINE_READER_H
#define OPERATE_LINES_LINE_READER_H

/* The lines of a file or of stdin, compressed with zstd or plain: archives, messages that are to be published. */

#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct line_reader;

/* An archive: JSON lines. what: how errors call it, with a blank behind: "archive ". */
int line_reader_open(const char *what, const char *path, struct line_reader **ret_reader,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Any lines that are to be read twice; path "-": stdin. What cannot be read twice, a pipe, is copied on the way to a file
 * without a name in $TMPDIR (/var/tmp).
 */
int line_reader_open_twice(const char *path, struct line_reader **ret_reader,
			   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* From the first line on once more, after all were read. */
int line_reader_rewind(struct line_reader *reader, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * The next line, without its end, until the next call; *ret_line is NULL behind the last one. EPROTO: the
 * file is damaged or cut off, or a line is too long to be one; the error says behind which line and at which byte.
 */
int line_reader_next(struct line_reader *reader, const char **ret_line, size_t *ret_size,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Lines that line_reader_next() gave. */
int64_t line_reader_lines(const struct line_reader *reader);

/* Did the last of them end with a line break? */
bool line_reader_whole(const struct line_reader *reader);

struct line_reader *line_reader_close(struct line_reader *reader);

#endif
