/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

/*
 * What happened, through a sink that the program's owner handed in. Every line is one of the events of the table in
 * log.c: people and programs look for its name, the text may change. Thread-safe if the sink is.
 * docs/logs.md explains each event.
 */

#include <outbox/log.h>

#include <stddef.h>

enum event {
	EVENT_ADMIN_ACT,
	EVENT_ADMIN_DENIED,
	EVENT_ADMIN_FAILED,
	EVENT_ADMIN_LISTEN,
	EVENT_ADMIN_TOKENS,
	EVENT_ALERT_FIRED,
	EVENT_ALERT_RESOLVED,
	EVENT_ALERT_TOLD,
	EVENT_ALERT_UNTOLD,
	EVENT_CLEANUP_BACK,
	EVENT_CLEANUP_DONE,
	EVENT_CLEANUP_FAILED,
	EVENT_CONFIG_REFUSED,
	EVENT_CONFIG_RELOADED,
	EVENT_CONFIG_RESTART,
	EVENT_DAEMON_DRAIN,
	EVENT_DAEMON_END,
	EVENT_DAEMON_LEFT,
	EVENT_LANE_BACK,
	EVENT_LANE_FENCED,
	EVENT_LANE_REFUSED,
	EVENT_LANE_TAKEOVER,
	EVENT_LANE_UNANSWERED,
	EVENT_MESSAGE_REFUSED,
	EVENT_OTLP_AWAY,
	EVENT_OTLP_BACK,
	EVENT_RELAY_FAILED,
	EVENT_RELAY_POLLS,
	EVENT_RELAY_START,
	EVENT_RELAY_STUCK,
	EVENT_SOURCE_AWAY,
	EVENT_STORE_AWAY,
	EVENT_STORE_BACK,
	EVENT_TARGET_BACK,
	EVENT_TARGET_BANDS,
	EVENT_TARGET_CLOSED,
	EVENT_TARGET_OUTAGE,
	EVENT_TARGET_REROUTED,
	EVENT_TARGET_SERVED,
	EVENT_TARGET_STANDBY,
	EVENT_TARGET_UNSERVED,
	EVENT_TARGET_UNSIGNED,
	EVENT_WATCH_FAILED,
	EVENTS /* how many there are */
};

struct log {
	outbox_log_fn sink; /* NULL: silent */
	void *context;
};

/* What it is about. */
struct about {
	const char *source, *target; /* NULL: none in particular */
	const int *lane;             /* NULL: none in particular */
};

/* Foreign text in the arguments must have gone through text_display() or text_shown(). No payload, no secret. */
void log_event(const struct log *log, enum event event, const struct about *about,
	       const char *format, ...) OUTBOX_PRINTF(4, 5);

#endif
