/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

/* Lines for people, through a sink that the program's owner handed in. Thread-safe if the sink is. */

#include <outbox/error.h>

enum log_level { LOG_DEBUG = 0, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log {
	void (*sink)(void *context, int level, const char *line); /* NULL: silent */
	void *context;
};

/* Foreign text in the arguments must have gone through text_display() or text_shown(). */
void log_line(const struct log *log, enum log_level level, const char *format, ...)
	OUTBOX_PRINTF(3, 4);

#endif
