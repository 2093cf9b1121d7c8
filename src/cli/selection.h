/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SELECTION_H
#define CLI_SELECTION_H

/* --state --why --target --type --key and the two bounds: the same options select in every command. */

#include "cli/cli.h"

struct selection {
	const char *state, *why, *target, *type, *key;
	outbox_time created_before, changed_before;
};

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

bool selection_empty(const struct selection *selection);

/* Fill a filter; it borrows the selection's texts. EINVAL for a state or why that does not exist. */
int selection_filter(const struct selection *selection, struct outbox_filter *ret_filter,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* One word for a delivery's state: a pending one is shown by its why. */
const char *delivery_word(const struct outbox_delivery *row);
int delivery_colour(const struct outbox_delivery *row);

#endif
