/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/relay_options.h"

#include "base/cleanup.h"

/* Two places for one setting would leave people guessing which one holds. */
int relay_values_refuse(const struct relay_values *given, struct outbox_error *err)
{
	const struct {
		const char *name;
		bool used;
	} rows[] = {
		{ "to", given->to.count },
		{ "match", given->match.count },
		{ "envelope", given->envelope.count },
		{ "order", given->order.count },
		{ "start", given->start.count },
		{ "dead-letter", given->dead_letter.count },
		{ "kind", given->kind.count },
		{ "policy", given->policy.count },
		{ "hold", given->hold.count },
		{ "bands", given->bands.count },
		{ "rate", given->rate.count },
		{ "workers", given->workers },
		{ "batch", given->batch },
		{ "batch-bytes", given->batch_bytes },
		{ "lease", given->lease },
		{ "poll", given->poll },
		{ "retain-delivered", given->retain_delivered },
		{ "retain-failed", given->retain_failed },
		{ "shutdown-timeout", given->shutdown_timeout },
		{ "instance", given->instance },
		{ "listen", given->listen },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].used)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "--%s and --config do not go together; write it in the file, "
					   "or over it with --set KEY=VALUE",
					   rows[i].name);
	return OUTBOX_OK;
}
