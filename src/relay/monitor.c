/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "relay/registry.h"
#include "store/store.h"

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
	r = store->ops->stats(store, arena, ret_stats, err);
	store_close(store);
	return r;
}
