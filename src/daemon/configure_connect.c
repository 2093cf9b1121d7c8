/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/configure.h"

#include "base/cleanup.h"
#include "base/random.h"
#include "config/compare.h"
#include "operate/schema_check.h"
#include "relay/registry.h"
#include "store/store.h"

DEFINE_CLEANUP(struct outbox_store *, store_close)

struct look {
	const struct config *config;
	const struct config_source *source;
	const struct node *node; /* the source's */
	struct problems *problems;
};

static int open_source(const struct look *look, struct random_state *random,
		       struct outbox_store **ret_store, struct outbox_error *err)
{
	_cleanup_(store_closep) struct outbox_store *store = NULL;
	struct outbox_store_info info = { 0 };
	struct outbox_relay_config relay;
	int r = config_relay(look->config, look->source, &relay, err);

	if (r == OUTBOX_OK)
		r = registry_open_store(NULL, relay.store, false, outbox_clock_system(),
					&random->base, &store, err);
	if (r == OUTBOX_OK)
		r = store->ops->info(store, &info, err);
	if (r == OUTBOX_OK)
		r = store_ready(&info, relay.store, "", err);
	if (r == OUTBOX_OK) {
		*ret_store = store;
		store = NULL;
	}
	return r;
}

/* Only the database knows whether a target is new among messages that were delivered. */
static int look_at_starts(const struct look *look, struct outbox_store *store,
			  struct outbox_error *err)
{
	const struct config_target *targets = look->config->targets.items;
	const struct node *node = node_find(look->config->root, "targets")->first;
	int r = OUTBOX_OK;

	for (size_t i = 0; r == OUTBOX_OK && i < look->config->targets.count;
	     i++, node = node->next) {
		bool wants = false;

		if (!config_source_has(look->source, targets[i].name) || targets[i].start.where ||
		    targets[i].match.nothing || !STORE_HAS(store, wants_start))
			continue;
		r = store->ops->wants_start(store, targets[i].name, &wants, err);
		if (wants)
			problems_about(look->problems, node,
				       "source %s: it is new, and messages were already delivered there: "
				       "say where it starts, with start: oldest, now or a time",
				       look->source->name);
	}
	return r;
}

int configure_connect(const struct config *config, struct problems *problems,
		      struct outbox_error *err)
{
	const struct config_source *sources = config->sources.items;
	const struct node *node = node_find(config->root, "sources")->first;

	for (size_t i = 0; i < config->sources.count; i++, node = node->next) {
		_cleanup_(store_closep) struct outbox_store *store = NULL;
		struct look look = { config, &sources[i], node, problems };
		struct outbox_error found = OUTBOX_ERROR_INIT;
		struct random_state random;
		int r;

		random_init(&random, random_system_seed());
		r = open_source(&look, &random, &store, &found);
		if (r == OUTBOX_OK)
			r = look_at_starts(&look, store, &found);
		if (r)
			problems_about(problems, node_find(node, "store"), "%s", found.message);
	}
	if (problems->count == 0)
		return OUTBOX_OK;
	problems_sort(problems);
	return outbox_fail(err, OUTBOX_ECONFIG, "%zu mistake%s", problems->count + problems->more,
			   problems->count == 1 ? "" : "s");
}
