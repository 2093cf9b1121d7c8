/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_LINES_PUBLISH_LINES_H
#define OPERATE_LINES_PUBLISH_LINES_H

/* Publishing the lines of a file, in transactions of many. */

#include "operate/bulk.h"
#include "operate/lines/line_reader.h"
#include "operate/lines/message_line.h"

#include <outbox/store.h>

struct publish_lines {
	struct line_reader *reader;
	struct outbox_store *store;
	struct outbox_clock *clock;
	int format;        /* enum line_format */
	size_t batch;      /* messages in a transaction */
	bool skip_invalid; /* publish the others */
	/* The id of a line that brings none. The same line gets the same one each time, so that it is published once. */
	int (*make_id)(void *context, int64_t line, const char *text, size_t size, char ret_id[37],
		       struct outbox_error *err);
	/* Line so-and-so is wrong; called by the check alone. */
	void (*say_wrong)(void *context, int64_t line, const char *why);
	void *context;
	/* what was found */
	int64_t messages, wrong;
	/* what was done */
	int64_t published, repeated; /* repeated: there already */
	bool ended;                  /* early, behind a whole transaction */
};

/* Read all of it, write nothing. */
int publish_lines_check(struct publish_lines *lines, const struct bulk *bulk,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Then publish it. What is in the log already is counted and left as it is. */
int publish_lines_append(struct publish_lines *lines, const struct bulk *bulk,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
