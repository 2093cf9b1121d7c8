/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_LOG_H
#define OUTBOX_LOG_H

/* What a relay logs while it runs. docs/logs.md lists the events. */

#include <outbox/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum outbox_log_level { OUTBOX_LOG_DEBUG = 0, OUTBOX_LOG_INFO, OUTBOX_LOG_WARN, OUTBOX_LOG_ERROR };

/* Borrowed for the call. Never contains a payload or a password. */
struct outbox_log_event {
	int level;          /* enum outbox_log_level */
	const char *name;   /* "target.outage"; stable */
	const char *source; /* NULL: the relay's only one */
	const char *target; /* NULL: none in particular */
	int lane;           /* -1: none in particular */
	const char *text;   /* one line for people; does not repeat the source, target and lane */
};

/* Called from the relay's threads, several at once: it must be quick and must not call the relay. */
typedef void (*outbox_log_fn)(void *context, const struct outbox_log_event *event);

#ifdef __cplusplus
}
#endif

#endif
