/* SPDX-License-Identifier: Apache-2.0 */

#include "base/log.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

static const struct {
	const char *name;
	enum outbox_log_level level;
} rows[] = {
	[EVENT_ADMIN_ACT] = { "admin.act", OUTBOX_LOG_INFO },
	[EVENT_ADMIN_DENIED] = { "admin.denied", OUTBOX_LOG_WARN },
	[EVENT_ADMIN_FAILED] = { "admin.failed", OUTBOX_LOG_WARN },
	[EVENT_ADMIN_LISTEN] = { "admin.listen", OUTBOX_LOG_INFO },
	[EVENT_ADMIN_TOKENS] = { "admin.tokens", OUTBOX_LOG_INFO },
	[EVENT_ALERT_FIRED] = { "alert.fired", OUTBOX_LOG_WARN },
	[EVENT_ALERT_RESOLVED] = { "alert.resolved", OUTBOX_LOG_INFO },
	[EVENT_ALERT_TOLD] = { "alert.told", OUTBOX_LOG_INFO },
	[EVENT_ALERT_UNTOLD] = { "alert.untold", OUTBOX_LOG_WARN },
	[EVENT_CLEANUP_BACK] = { "cleanup.back", OUTBOX_LOG_INFO },
	[EVENT_CLEANUP_DONE] = { "cleanup.done", OUTBOX_LOG_DEBUG },
	[EVENT_CLEANUP_FAILED] = { "cleanup.failed", OUTBOX_LOG_WARN },
	[EVENT_CONFIG_REFUSED] = { "config.refused", OUTBOX_LOG_ERROR },
	[EVENT_CONFIG_RELOADED] = { "config.reloaded", OUTBOX_LOG_INFO },
	[EVENT_CONFIG_RESTART] = { "config.restart", OUTBOX_LOG_WARN },
	[EVENT_DAEMON_DRAIN] = { "daemon.drain", OUTBOX_LOG_INFO },
	[EVENT_DAEMON_END] = { "daemon.end", OUTBOX_LOG_INFO },
	[EVENT_DAEMON_LEFT] = { "daemon.left", OUTBOX_LOG_WARN },
	[EVENT_LANE_BACK] = { "lane.back", OUTBOX_LOG_INFO },
	[EVENT_LANE_FENCED] = { "lane.fenced", OUTBOX_LOG_WARN },
	[EVENT_LANE_REFUSED] = { "lane.refused", OUTBOX_LOG_ERROR },
	[EVENT_LANE_TAKEOVER] = { "lane.takeover", OUTBOX_LOG_WARN },
	[EVENT_LANE_UNANSWERED] = { "lane.unanswered", OUTBOX_LOG_WARN },
	[EVENT_MESSAGE_REFUSED] = { "message.refused", OUTBOX_LOG_WARN },
	[EVENT_OTLP_AWAY] = { "otlp.away", OUTBOX_LOG_WARN },
	[EVENT_OTLP_BACK] = { "otlp.back", OUTBOX_LOG_INFO },
	[EVENT_RELAY_FAILED] = { "relay.failed", OUTBOX_LOG_ERROR },
	[EVENT_RELAY_POLLS] = { "relay.polls", OUTBOX_LOG_WARN },
	[EVENT_RELAY_START] = { "relay.start", OUTBOX_LOG_INFO },
	[EVENT_RELAY_STUCK] = { "relay.stuck", OUTBOX_LOG_WARN },
	[EVENT_SOURCE_AWAY] = { "source.away", OUTBOX_LOG_WARN },
	[EVENT_STORE_AWAY] = { "store.away", OUTBOX_LOG_WARN },
	[EVENT_STORE_BACK] = { "store.back", OUTBOX_LOG_INFO },
	[EVENT_TARGET_BACK] = { "target.back", OUTBOX_LOG_INFO },
	[EVENT_TARGET_BANDS] = { "target.bands", OUTBOX_LOG_INFO },
	[EVENT_TARGET_CLOSED] = { "target.closed", OUTBOX_LOG_ERROR },
	[EVENT_TARGET_OUTAGE] = { "target.outage", OUTBOX_LOG_WARN },
	[EVENT_TARGET_REROUTED] = { "target.rerouted", OUTBOX_LOG_WARN },
	[EVENT_TARGET_SERVED] = { "target.served", OUTBOX_LOG_INFO },
	[EVENT_TARGET_STANDBY] = { "target.standby", OUTBOX_LOG_INFO },
	[EVENT_TARGET_UNSERVED] = { "target.unserved", OUTBOX_LOG_ERROR },
	[EVENT_TARGET_UNSIGNED] = { "target.unsigned", OUTBOX_LOG_WARN },
	[EVENT_WATCH_FAILED] = { "watch.failed", OUTBOX_LOG_ERROR },
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == EVENTS, "a row for each event");

void log_event(const struct log *log, enum event event, const struct about *about,
	       const char *format, ...)
{
	static const struct about nothing = { NULL };
	char line[LINE_MAX_BYTES];
	va_list args;
	int n;

	if (!log || !log->sink)
		return;
	if (!about)
		about = &nothing;
	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(line)) {
		size_t cut = utf8_cut(line, sizeof(line) - 1, sizeof(line) - 4);

		memcpy(line + cut, "...", 4);
	}
	text_clean(line); /* one call, one line, whatever the arguments hold */
	log->sink(log->context, &(struct outbox_log_event){ .level = (int)rows[event].level,
							    .name = rows[event].name,
							    .source = about->source,
							    .target = about->target,
							    .lane = about->lane ? *about->lane : -1,
							    .text = line });
}
