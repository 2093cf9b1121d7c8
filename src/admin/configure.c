/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/configure.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"
#include "base/url.h"
#include "relay/plan.h"
#include "relay/registry.h"
#include "store/store.h"
#include "transport/transport.h"

#include <string.h>

#define DRIVERS_MAX 32
#define PLAN_MAX ((size_t)16 << 20)

DEFINE_CLEANUP(struct config *, config_free)

/* Is there a driver for the URL of this key? memory: and handler: want a program that brings objects. */
static void check_scheme(const struct node *item, const char *key,
			 const char *const *const *schemes, size_t count, struct problems *problems)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(300);
	const struct node *node = node_find(item, key);
	char scheme[32] = "";

	url_scheme(node->text, scheme, sizeof(scheme));
	for (size_t i = 0; i < count; i++)
		for (const char *const *name = schemes[i]; *name; name++) {
			if (strcmp(*name, "memory") == 0 || strcmp(*name, "handler") == 0)
				continue;
			if (strcmp(*name, scheme) == 0)
				return;
			buf_printf(&names, "%s%s:", names.size ? ", " : "", *name);
		}
	problems_about(problems, node, "\"%s:\" is not known to this build; there are %s", scheme,
		       buf_str(&names));
}

static void check_schemes(const struct config *config, struct problems *problems)
{
	const char *const *stores[DRIVERS_MAX], *const *transports[DRIVERS_MAX];
	size_t n_stores = 0, n_transports = 0;
	const struct node *item;

	for (; store_drivers[n_stores] && n_stores < DRIVERS_MAX; n_stores++)
		stores[n_stores] = store_drivers[n_stores]->schemes;
	for (; transport_drivers[n_transports] && n_transports < DRIVERS_MAX; n_transports++)
		transports[n_transports] = transport_drivers[n_transports]->schemes;
	for (item = node_find(config->root, "sources")->first; item; item = item->next)
		check_scheme(item, "store", stores, n_stores, problems);
	for (item = node_find(config->root, "targets")->first; item; item = item->next)
		check_scheme(item, "to", transports, n_transports, problems);
}

/* Opening a transport connects to nothing, but looks at every option of its URL and reads its secrets. */
static int try_transports(const struct relay_plan *plan, struct outbox_error *err)
{
	struct random_state random;
	int r = OUTBOX_OK;

	random_init(&random, plan->seed);
	for (size_t i = 0; r == OUTBOX_OK && i < plan->n_targets; i++) {
		const struct target_plan *target = &plan->targets[i];
		struct outbox_transport_config config = OUTBOX_SIZED(struct outbox_transport_config);
		struct outbox_transport *transport = NULL;

		config.url = target->to;
		config.target = target->name;
		config.envelope = target->envelope;
		config.clock = plan->clock;
		config.random = &random.base;
		r = registry_open_transport(NULL, &config, &transport, err);
		if (r)
			outbox_wrap(err, "target \"%s\"", target->name);
		else
			transport_close(transport);
	}
	return r;
}

/* All that the engine itself checks, for every source. It knows no lines. */
static int try_plans(const struct config *config, bool secrets, struct outbox_error *err)
{
	const struct config_source *sources = config->sources.items;
	struct outbox_arena *arena = outbox_arena_new(PLAN_MAX);
	int r = arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	for (size_t i = 0; r == OUTBOX_OK && i < config->sources.count; i++) {
		struct outbox_relay_config relay;
		struct relay_plan plan;

		r = config_relay(config, &sources[i], &relay, err);
		if (r == OUTBOX_OK)
			r = plan_make(&relay, arena, &plan, err);
		if (r == OUTBOX_OK && secrets)
			r = try_transports(&plan, err);
	}
	outbox_arena_free(arena);
	return r;
}

int configure(const struct config_input *input, struct config **ret_config,
	      struct problems *problems, struct outbox_error *err)
{
	_cleanup_(config_freep) struct config *config = NULL;
	int r = config_load(input, &config, problems, err);

	if (r == OUTBOX_OK)
		check_schemes(config, problems);
	if (r == OUTBOX_OK && problems->count == 0)
		r = try_plans(config, input->secrets, err);
	if (r == OUTBOX_OK && problems->count == 0) {
		*ret_config = config;
		config = NULL;
		return OUTBOX_OK;
	}
	if (r != OUTBOX_OK && r != OUTBOX_ECONFIG)
		return r;
	return problems->count ? outbox_fail(err, OUTBOX_ECONFIG, "%s: %zu mistake%s", input->file,
					     problems->count + problems->more,
					     problems->count == 1 ? "" : "s")
			       : r;
}

int config_source_find(const struct config *config, const char *name,
		       const struct config_source **ret_source, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(400);
	const struct config_source *sources = config->sources.items;
	char shown[80];

	for (size_t i = 0; i < config->sources.count; i++) {
		if (strcmp(sources[i].name, name) == 0) {
			*ret_source = &sources[i];
			return OUTBOX_OK;
		}
		buf_printf(&names, "%s%s", i ? ", " : "", sources[i].name);
	}
	return outbox_fail(err, OUTBOX_ENOTFOUND, "no source \"%s\" in the file; there are: %s",
			   text_shown(shown, sizeof(shown), name), buf_str(&names));
}
