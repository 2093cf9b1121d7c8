/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_JOURNAL_H
#define DAEMON_JOURNAL_H

/*
 * The log of this process, on stderr: a line an event, as text or JSON. Control characters are escaped, the passwords
 * of every URL in a text are masked, and a line is written with one write. From any thread.
 */

#include "core/secrets.h"

#include "base/log.h"

#include <stdbool.h>

/* How it is written, and the least level; also while others write. */
void journal_choose(bool json, int level);
bool journal_is_json(void);

/* An outbox_log_fn. The context, when not NULL, is a text: the source's name. */
void journal_sink(void *context, const struct outbox_log_event *event);

/* Say it. */
void journal(enum event event, const struct about *about, const char *format, ...)
	OUTBOX_PRINTF(3, 4);

#define ABOUT_SOURCE(source_) (&(struct about){ .source = (source_) })

#endif
