/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SELECTION_H
#define CLI_SELECTION_H

/* --state --why --target --type --key and the two bounds: the same options select in every command. */

#include "cli/cli.h"
#include "operate/selection.h"

#define SELECTION_OPTIONS(type_, states_)                                                \
	OPTION("state", FIELD_TEXT, type_, select.state, "STATE", states_),              \
		OPTION("target", FIELD_TEXT, type_, select.target, "NAME",               \
		       "deliveries to this target"),                                     \
		OPTION("type", FIELD_TEXT, type_, select.type, "GLOB",                   \
		       "type, * and ? match: order.*"),                                  \
		OPTION("key", FIELD_TEXT, type_, select.key, "KEY", "this key exactly"), \
		OPTION("why", FIELD_TEXT, type_, select.why, "WHY",                      \
		       "of pending ones: new, retry, deferred, parked or paused"),       \
		OPTION("created-before", FIELD_AGO, type_, select.created_before, "AGE", \
		       "published longer ago: 1h, 7d, or a time"),                       \
		OPTION("changed-before", FIELD_AGO, type_, select.changed_before, "AGE", \
		       "failed, or changed in another way, longer ago")

#endif
