/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_LINES_MESSAGE_LINE_H
#define OPERATE_LINES_MESSAGE_LINE_H

/* A line that is a message to be published. */

#include <outbox/arena.h>
#include <outbox/message.h>

enum line_format {
	LINE_ANY = 0, /* each line says it: a CloudEvent has "specversion" */
	LINE_JSON, /* the fields of a message by their own names, as `outbox show --json` has them */
	LINE_CLOUDEVENTS,
	LINE_ARCHIVE
};

/* Their names, NULL in front and behind. */
extern const char *const line_format_names[];

/*
 * A message whose every field is right, everything in the arena. EINVAL names the field as the line has it,
 * the value and the remedy.
 */
int message_line_read(const char *line, size_t size, int format, struct outbox_arena *arena,
		      struct outbox_message *ret_message, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
