/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_LINES_EVENT_LINE_H
#define OPERATE_LINES_EVENT_LINE_H

/* A line that is a CloudEvent in its structured form, as archives and the file transport have them. */

#include <outbox/arena.h>
#include <outbox/store.h>

#include <stdbool.h>

/*
 * The message of a line: what the archive kept of it, payload included. ret_malformed: it made no sense when
 * it was archived and was never delivered. Its seq is the place it had in its log, 0: not known. EPROTO: this line is
 * not one of ours.
 */
int event_line_read(const char *text, size_t size, struct outbox_arena *arena,
		    struct outbox_claimed *ret_found, bool *ret_malformed,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
