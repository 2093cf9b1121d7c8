/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SELECTION_H
#define CLI_SELECTION_H

/* The options that select: deliveries (struct selection select), messages of the past (struct replay_filter filter). */

#include "cli/cli.h"
#include "core/lifecycle.h"
#include "operate/replay_source.h"
#include "operate/selection.h"

/* A text of which a shell can complete the usual words; what else it may be is looked at later. */
#define OPTION_ONE_OF(name_, field_, argument_, words_, help_)                                  \
	{                                                                                       \
		.name = (name_), .type = FIELD_TEXT, .offset = offsetof(struct values, field_), \
		.argument = (argument_), .words = (words_), .help = (help_)                     \
	}

#define SELECTION_OPTIONS(states_)                                                \
	OPTION_ONE_OF("state", select.state, "STATE", state_names, states_),      \
		OPTION("target", FIELD_TEXT, select.target, "NAME",               \
		       "only deliveries to this target"),                         \
		OPTION("type", FIELD_TEXT, select.type, "GLOB",                   \
		       "only types that match; * and ? are wildcards: order.*"),  \
		OPTION("key", FIELD_TEXT, select.key, "KEY", "only this key"),    \
		OPTION("created-before", FIELD_AGO, select.created_before, "AGE", \
		       "published longer ago than this: 1h, 7d, or a time"),      \
		OPTION("changed-before", FIELD_AGO, select.changed_before, "AGE", \
		       "failed or changed longer ago than this")

/* A failed delivery has none, so requeue does not take it. */
#define OPTION_WHY                                         \
	OPTION_ONE_OF("why", select.why, "WHY", why_names, \
		      "only pending ones with this reason: new, retry, deferred, parked or paused")

#define PAST_OPTIONS                                                                       \
	OPTION("type", FIELD_TEXT, filter.type, "GLOB",                                    \
	       "only types that match; * and ? are wildcards: order.*"),                   \
		OPTION("key", FIELD_TEXT, filter.key, "KEY", "only this key"),             \
		OPTION("after", FIELD_AGO, filter.after, "TIME",                           \
		       "event time at or after: 2026-11-15T18:00:00Z, or an age like 7d"), \
		OPTION("before", FIELD_AGO, filter.before, "TIME", "event time before")

#endif
