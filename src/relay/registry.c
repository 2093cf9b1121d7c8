/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/registry.h"

#include "base/random.h"
#include "base/text.h"
#include "base/url.h"
#include "store/store.h"
#include "transport/handler/handler.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVERS_MAX 32

struct outbox_registry {
	const struct outbox_store_ops *stores[DRIVERS_MAX];
	void *store_contexts[DRIVERS_MAX];
	size_t n_stores;
	const struct outbox_transport_ops *transports[DRIVERS_MAX];
	void *transport_contexts[DRIVERS_MAX];
	size_t n_transports;
	struct handler_table *handlers;
};

int outbox_registry_new(struct outbox_registry **ret_registry, struct outbox_error *err)
{
	struct outbox_registry *registry;
	int r;

	if (!ret_registry)
		return outbox_fail(err, OUTBOX_EINVAL, "ret_registry must not be NULL");
	registry = calloc(1, sizeof(*registry));
	if (!registry)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = handler_table_new(&registry->handlers, err);
	if (r) {
		outbox_registry_free(registry);
		return r;
	}
	*ret_registry = registry;
	return OUTBOX_OK;
}

struct outbox_registry *outbox_registry_free(struct outbox_registry *registry)
{
	if (!registry)
		return NULL;
	handler_table_free(registry->handlers);
	free(registry);
	return NULL;
}

int outbox_registry_add_transport(struct outbox_registry *registry,
				  const struct outbox_transport_ops *ops, void *context,
				  struct outbox_error *err)
{
	int r;

	if (!registry || !ops)
		return outbox_fail(err, OUTBOX_EINVAL, "registry and ops must not be NULL");
	r = transport_ops_check(ops, err);
	if (r)
		return r;
	if (registry->n_transports == DRIVERS_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "at most %d transports of your own",
				   DRIVERS_MAX);
	registry->transports[registry->n_transports] = ops;
	registry->transport_contexts[registry->n_transports++] = context;
	return OUTBOX_OK;
}

int outbox_registry_add_store(struct outbox_registry *registry, const struct outbox_store_ops *ops,
			      void *context, struct outbox_error *err)
{
	int r;

	if (!registry || !ops)
		return outbox_fail(err, OUTBOX_EINVAL, "registry and ops must not be NULL");
	r = store_ops_check(ops, err);
	if (r)
		return r;
	if (registry->n_stores == DRIVERS_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "at most %d stores of your own", DRIVERS_MAX);
	registry->stores[registry->n_stores] = ops;
	registry->store_contexts[registry->n_stores++] = context;
	return OUTBOX_OK;
}

int outbox_registry_handle(struct outbox_registry *registry, const char *type,
			   outbox_handler handler, void *context, struct outbox_error *err)
{
	return outbox_registry_handle_as(registry, NULL, type, handler, context, err);
}

int outbox_registry_handle_as(struct outbox_registry *registry, const char *name, const char *type,
			      outbox_handler handler, void *context, struct outbox_error *err)
{
	struct handler_table *table;
	int r;

	if (!registry)
		return outbox_fail(err, OUTBOX_EINVAL, "registry must not be NULL");
	r = handler_table_named(registry->handlers, name, &table, err);
	return r ? r : handler_table_add(table, type, handler, context, err);
}

static bool has_scheme(const char *const *schemes, const char *scheme)
{
	for (; *schemes; schemes++)
		if (!strcmp(*schemes, scheme))
			return true;
	return false;
}

/* "unknown scheme" with what there is, so that the remedy is in the message. */
static int unknown_scheme(const char *what, const char *likely, const char *url, const char *known,
			  const char *remedy, struct outbox_error *err)
{
	char masked[200], shown[200], scheme[32];

	url_mask(url, masked, sizeof(masked));
	text_shown(shown, sizeof(shown), masked);
	if (*url && !url_scheme(url, scheme, sizeof(scheme)) && !strchr(url, ':'))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s \"%s\": this is not a URL; did you mean %s:%s?", what, shown,
				   likely, shown);
	return outbox_fail(err, OUTBOX_ECONFIG, "%s \"%s\": no driver for it; known: %s%s", what,
			   shown, known, remedy);
}

bool scheme_usable(const char *scheme)
{
	return strcmp(scheme, "handler") != 0;
}

bool scheme_listed(const char *scheme)
{
	return scheme_usable(scheme) && strcmp(scheme, "rediss") != 0;
}

/* What the program added can be used. Of what is built in, handler: has its table in a registry. */
static bool offered(const struct outbox_registry *registry, bool added, const char *scheme)
{
	if (added)
		return strcmp(scheme, "rediss") != 0;
	return scheme_listed(scheme) || (registry && strcmp(scheme, "handler") == 0);
}

static void add_schemes(const struct outbox_registry *registry, bool added, char *out, size_t size,
			const char *const *schemes)
{
	for (; *schemes; schemes++) {
		size_t used = strlen(out);

		if (offered(registry, added, *schemes))
			snprintf(out + used, size - used, "%s%s:", used ? ", " : "", *schemes);
	}
}

static int find_store(const struct outbox_registry *registry, const char *url,
		      const struct outbox_store_ops **ret_ops, void **ret_context,
		      struct outbox_error *err)
{
	char scheme[32] = "", known[256] = "";

	url_scheme(url, scheme, sizeof(scheme));
	for (size_t i = 0; registry && i < registry->n_stores; i++) {
		add_schemes(registry, true, known, sizeof(known), registry->stores[i]->schemes);
		if (!has_scheme(registry->stores[i]->schemes, scheme))
			continue;
		*ret_ops = registry->stores[i];
		*ret_context = registry->store_contexts[i];
		return OUTBOX_OK;
	}
	for (size_t i = 0; store_drivers[i]; i++) {
		add_schemes(registry, false, known, sizeof(known), store_drivers[i]->schemes);
		if (!has_scheme(store_drivers[i]->schemes, scheme))
			continue;
		*ret_ops = store_drivers[i];
		*ret_context = NULL;
		return OUTBOX_OK;
	}
	return unknown_scheme("store", "sqlite", url, known, "", err);
}

int registry_check_store(const struct outbox_registry *registry, const char *url,
			 struct outbox_error *err)
{
	const struct outbox_store_ops *ops;
	void *context;
	int r = find_store(registry, url, &ops, &context, err);

	return r ? r : store_check_url(ops, url, err);
}

int registry_open_store(const struct outbox_registry *registry, const char *url, bool create,
			struct outbox_clock *clock, struct outbox_random *random,
			struct outbox_store **ret_store, struct outbox_error *err)
{
	struct outbox_store_config config = {
		.struct_size = sizeof(config), .url = url, .clock = clock, .random = random
	};
	const struct outbox_store_ops *ops;
	int r = find_store(registry, url, &ops, &config.context, err);

	return r ? r : store_open(ops, &config, create, ret_store, err);
}

int registry_open_transport(const struct outbox_registry *registry,
			    struct outbox_transport_config *config,
			    struct outbox_transport **ret_transport, struct outbox_error *err)
{
	char scheme[32] = "", known[256] = "";

	url_scheme(config->url, scheme, sizeof(scheme));
	for (size_t i = 0; registry && i < registry->n_transports; i++) {
		add_schemes(registry, true, known, sizeof(known), registry->transports[i]->schemes);
		if (!has_scheme(registry->transports[i]->schemes, scheme))
			continue;
		config->context = registry->transport_contexts[i];
		return registry->transports[i]->open(config, ret_transport, err);
	}
	for (size_t i = 0; transport_drivers[i]; i++) {
		add_schemes(registry, false, known, sizeof(known), transport_drivers[i]->schemes);
		if (!has_scheme(transport_drivers[i]->schemes, scheme))
			continue;
		if (registry && transport_drivers[i] == &handler_transport_ops)
			config->context = registry->handlers;
		return transport_drivers[i]->open(config, ret_transport, err);
	}
	return unknown_scheme("to", "file", config->url, known, transport_drivers_remedy, err);
}

int outbox_monitor(const char *store_url, const struct outbox_registry *registry,
		   struct outbox_arena *arena, struct outbox_stats *ret_stats,
		   struct outbox_error *err)
{
	struct random_state random;
	struct outbox_store *store;
	int r;

	if (!store_url || !arena || !ret_stats)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "store_url, arena and ret_stats must not be NULL");
	random_init(&random, random_system_seed());
	r = registry_open_store(registry, store_url, false, outbox_clock_system(), &random.base,
				&store, err);
	if (r)
		return r;
	r = store_stats(store, arena, ret_stats, err);
	store_close(store);
	return r;
}
