/* SPDX-License-Identifier: Apache-2.0 */
/* From a configuration to the struct that `outbox relay`'s options also fill: one way to a relay. */
#include "config/check.h"
#include "config/compare.h"
#include "core/bands.h"

#include <stddef.h>

static int make_target(const struct config *config, const struct config_target *from,
		       struct outbox_target_config *to, struct outbox_error *err)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	int r = target_url(from, from->password, config->arena, &target.to, err);

	if (r)
		return r;
	target.name = from->name;
	target.envelope = from->external ? OUTBOX_ENVELOPE_EXTERNAL : from->envelope;
	target.headers = from->headers.items;
	target.n_headers = from->headers.count;
	target.order = from->order;
	target.hold = from->hold;
	target.max_size = (size_t)from->max_size;
	target.paused = from->paused;
	target.start = from->start.where;
	target.start_time = from->start.time;
	target.dead_letter = from->dead_letter;
	target.route.types = from->match.type.items;
	target.route.n_types = from->match.type.count;
	target.route.headers = from->match.headers.items;
	target.route.n_headers = from->match.headers.count;
	target.route.kind = from->match.kind;
	target.route.nothing = from->match.nothing;
	/* what leaves the house is only what says that it may */
	target.route.published_only = from->external || from->match.published;
	for (size_t i = 0; i < from->match.priority.count; i++)
		target.route.bands |= band_parse(from->match.priority.items[i]);
	target.bands = from->bands;
	target.rate_count = from->rate.count;
	target.rate_period = from->rate.period;
	target.rate_burst = from->burst;
	target.policy = &from->policy;
	*to = target;
	return OUTBOX_OK;
}

int config_relay(const struct config *config, const struct config_source *source,
		 struct outbox_relay_config *ret_relay, struct outbox_error *err)
{
	struct outbox_relay_config relay = OUTBOX_RELAY_CONFIG_INIT;
	const struct config_target *targets = config->targets.items;
	const struct config_relay *from = &config->relay;
	struct outbox_target_config *list;
	int r = url_add_password(source->store, source->password, config->arena, &relay.store, err);

	if (r)
		return r;
	list = outbox_arena_alloc(config->arena, config->targets.count * sizeof(*list));
	if (!list)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < config->targets.count; i++) {
		if (!config_source_has(source, targets[i].name))
			continue;
		r = make_target(config, &targets[i], &list[relay.n_targets++], err);
		if (r)
			return r;
	}
	relay.targets = list;
	relay.workers = (int)from->workers;
	relay.instance = from->instance;
	/* batch, lease and poll are in each target's policy, which these would overrule */
	relay.batch_bytes = (size_t)from->batch_bytes;
	relay.publish_timeout = from->publish_timeout;
	relay.breaker_min = from->breaker_min;
	relay.breaker_max = from->breaker_max;
	relay.retain_delivered = from->retain_delivered;
	relay.retain_failed = from->retain_failed;
	relay.retain_inbox = from->retain_inbox;
	relay.purge_interval = from->purge_interval;
	relay.archive = from->archive;
	*ret_relay = relay;
	return OUTBOX_OK;
}
