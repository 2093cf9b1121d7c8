/* SPDX-License-Identifier: Apache-2.0 */

/* The documented numbers of four known systems and of Standard Webhooks, and ours. docs/vocabulary.md says where each is from. */

#include <outbox/relay.h>

#include "base/cleanup.h"

#include <string.h>

static const struct outbox_policy presets[] = {
	{
		.struct_size = sizeof(struct outbox_policy),
		.name = "default",
		.max_attempts = 10,
		.base = 1 * OUTBOX_SECONDS,
		.factor = 2,
		.cap = 5 * OUTBOX_MINUTES,
		.jitter_percent = 25,
	},
	{
		.struct_size = sizeof(struct outbox_policy),
		.name = "hermodr",
		.max_attempts = 5,
		.n_schedule = 4,
		.schedule = { 30 * OUTBOX_SECONDS, 1 * OUTBOX_MINUTES, 2 * OUTBOX_MINUTES,
			      5 * OUTBOX_MINUTES },
		.poll = 30 * OUTBOX_SECONDS,
	},
	{
		.struct_size = sizeof(struct outbox_policy),
		.name = "blueprint",
		.max_attempts = 10,
		.base = 5 * OUTBOX_SECONDS,
		.factor = 2,
		.cap = 15 * OUTBOX_MINUTES,
		.poll = 5 * OUTBOX_SECONDS,
		.batch = 20,
	},
	{
		.struct_size = sizeof(struct outbox_policy),
		.name = "protean",
		.max_attempts = 3,
		.base = 60 * OUTBOX_SECONDS,
		.factor = 2,
		.cap = 1 * OUTBOX_HOURS,
		.jitter_percent = 25,
		.lease = 5 * OUTBOX_MINUTES,
		.retain_delivered = 168 * OUTBOX_HOURS,
		.retain_failed = 720 * OUTBOX_HOURS,
	},
	{
		.struct_size = sizeof(struct outbox_policy),
		.name = "opinionated",
		.max_attempts = 5,
		.base = 2 * OUTBOX_SECONDS,
		.factor = 2,
		.cap = 5 * OUTBOX_MINUTES,
		.poll = 1 * OUTBOX_SECONDS,
		.lease = 5 * OUTBOX_MINUTES,
		.retain_delivered = 7 * OUTBOX_DAYS,
		.retain_failed = OUTBOX_NEVER,
		.purge_interval = 1 * OUTBOX_HOURS,
		.batch = 50,
	},
	{
		.struct_size = sizeof(struct outbox_policy),
		.name = "webhooks",
		.max_attempts = 10,
		.n_schedule = 9,
		.schedule = { 5 * OUTBOX_SECONDS, 5 * OUTBOX_MINUTES, 30 * OUTBOX_MINUTES,
			      2 * OUTBOX_HOURS, 5 * OUTBOX_HOURS, 10 * OUTBOX_HOURS,
			      14 * OUTBOX_HOURS, 20 * OUTBOX_HOURS, 24 * OUTBOX_HOURS },
		.jitter_percent = 25,
	},
};

const struct outbox_policy *outbox_policy_at(size_t i)
{
	return i < ARRAY_SIZE(presets) ? &presets[i] : NULL;
}

const struct outbox_policy *outbox_policy_find(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(presets); i++) {
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	}
	return NULL;
}
