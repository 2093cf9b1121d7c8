/* SPDX-License-Identifier: Apache-2.0 */
/* What others see of a daemon: its sources, their stores, its configuration. */
#include "daemon/internal.h"

#include "base/buf.h"
#include "base/random.h"
#include "base/text.h"
#include "base/url.h"
#include "relay/registry.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct daemon_store {
	struct random_state random;
	struct outbox_store *store;
};

/* The relay's own texts are gone when it is: copies. */
static int copy_metrics(const struct outbox_relay *relay, struct outbox_arena *arena,
			struct daemon_source *seen)
{
	size_t count = relay ? relay_target_count(relay) : 0;
	struct target_metrics *targets = outbox_arena_alloc(arena, count * sizeof(*targets) + 1);

	for (size_t i = 0; targets && i < count; i++) {
		relay_target_metrics(relay, i, &targets[i]);
		targets[i].target = outbox_arena_text(arena, targets[i].target);
		targets[i].transport = outbox_arena_text(arena, targets[i].transport);
		if (!targets[i].target || !targets[i].transport)
			targets = NULL;
	}
	seen->targets = targets;
	seen->n_targets = count;
	return targets ? OUTBOX_OK : OUTBOX_ENOMEM;
}

static int look(struct source *s, struct outbox_arena *arena, struct daemon_source *seen)
{
	int r;

	pthread_mutex_lock(&s->lock);
	seen->name = outbox_arena_text(arena, s->name);
	seen->state = s->state;
	url_mask(s->wanted->relays[s->index].store, seen->store, sizeof(seen->store));
	if (s->trouble.status) {
		seen->trouble = outbox_arena_text(arena, s->trouble.message);
		seen->trouble_since = s->trouble_since;
	}
	r = copy_metrics(s->relay, arena, seen);
	if (!seen->name || (s->trouble.status && !seen->trouble))
		r = OUTBOX_ENOMEM;
	pthread_mutex_unlock(&s->lock);
	return r;
}

int daemon_sources(struct daemon *d, struct outbox_arena *arena,
		   const struct daemon_source **ret_sources, size_t *ret_count,
		   struct outbox_error *err)
{
	struct daemon_source *list;
	int r = OUTBOX_OK;
	size_t count;

	pthread_mutex_lock(&d->lock);
	count = d->n_sources;
	list = outbox_arena_alloc(arena, count * sizeof(*list) + 1);
	for (size_t i = 0; list && r == OUTBOX_OK && i < count; i++) {
		memset(&list[i], 0, sizeof(list[i]));
		r = look(d->sources[i], arena, &list[i]);
	}
	pthread_mutex_unlock(&d->lock);
	if (!list || r)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_sources = list;
	*ret_count = count;
	return OUTBOX_OK;
}

const struct config *daemon_config(struct daemon *d)
{
	const struct config *config;

	pthread_mutex_lock(&d->lock);
	config = generation_hold(d->generation)->config;
	pthread_mutex_unlock(&d->lock);
	return config;
}

void daemon_config_done(struct daemon *d, const struct config *config)
{
	(void)d;
	generation_drop(config->owner);
}

static int find_store(const struct config *config, const char *name, const char **ret_store,
		      struct outbox_error *err)
{
	const struct generation *generation = config->owner;
	const struct config_source *sources = config->sources.items, *found = sources;
	int r = OUTBOX_OK;

	if (name)
		r = config_source_find(config, name, &found, err);
	else if (config->sources.count != 1)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "which source? there are %zu; name one of them",
				   config->sources.count);
	if (r == OUTBOX_OK)
		*ret_store = generation->relays[found - sources].store;
	return r;
}

int daemon_open_store(struct daemon *d, const char *source, struct daemon_store **ret_store,
		      struct outbox_error *err)
{
	const struct config *config = daemon_config(d);
	struct daemon_store *opened = calloc(1, sizeof(*opened));
	const char *url = NULL;
	int r = opened ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	if (r == OUTBOX_OK)
		r = find_store(config, source, &url, err);
	if (r == OUTBOX_OK) {
		random_init(&opened->random, random_system_seed());
		r = registry_open_store(NULL, url, false, outbox_clock_system(),
					&opened->random.base, &opened->store, err);
	}
	daemon_config_done(d, config);
	if (r) {
		free(opened);
		return r;
	}
	*ret_store = opened;
	return OUTBOX_OK;
}

struct outbox_store *daemon_store_of(struct daemon_store *store)
{
	return store->store;
}

struct daemon_store *daemon_close_store(struct daemon_store *store)
{
	if (store)
		store_close(store->store);
	free(store);
	return NULL;
}
