/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SELECTION_H
#define CLI_SELECTION_H

/* The options that select: deliveries (struct selection select), messages of the past (struct replay_filter filter). */

#include "cli/cli.h"
#include "operate/replay_source.h"
#include "operate/selection.h"

#define SELECTION_OPTIONS(type_, states_)                                                             \
	OPTION("state", FIELD_TEXT, type_, select.state, "STATE", states_),                           \
		OPTION("target", FIELD_TEXT, type_, select.target, "NAME",                            \
		       "only deliveries to this target"),                                             \
		OPTION("type", FIELD_TEXT, type_, select.type, "GLOB",                                \
		       "only types that match; * and ? are wildcards: order.*"),                      \
		OPTION("key", FIELD_TEXT, type_, select.key, "KEY", "only this key"),                 \
		OPTION("why", FIELD_TEXT, type_, select.why, "WHY",                                   \
		       "only pending ones with this reason: new, retry, deferred, parked or paused"), \
		OPTION("created-before", FIELD_AGO, type_, select.created_before, "AGE",              \
		       "published longer ago than this: 1h, 7d, or a time"),                          \
		OPTION("changed-before", FIELD_AGO, type_, select.changed_before, "AGE",              \
		       "failed or changed longer ago than this")

#define PAST_OPTIONS(type_)                                                                \
	OPTION("type", FIELD_TEXT, type_, filter.type, "GLOB",                             \
	       "only types that match; * and ? are wildcards: order.*"),                   \
		OPTION("key", FIELD_TEXT, type_, filter.key, "KEY", "only this key"),      \
		OPTION("after", FIELD_AGO, type_, filter.after, "TIME",                    \
		       "event time at or after: 2026-11-15T18:00:00Z, or an age like 7d"), \
		OPTION("before", FIELD_AGO, type_, filter.before, "TIME", "event time before")

#endif
