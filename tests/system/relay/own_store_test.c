/* SPDX-License-Identifier: Apache-2.0 */
/* A store of the application's own: the memory store plays it, with fewer ops. */
#include "store/store.h"
#include "world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

static struct outbox_store_ops own_ops;

static int own_open(const struct outbox_store_config *config, bool create,
		    struct outbox_store **ret_store, struct outbox_error *err)
{
	int r = store_open(&memory_store_ops, config, create, ret_store, err);

	if (r == OUTBOX_OK)
		(*ret_store)->ops = &own_ops;
	return r;
}

static struct outbox_registry *registry_of_own(struct world *w)
{
	struct outbox_registry *registry;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	assert_int_equal(outbox_registry_new(&registry, &err), OUTBOX_OK);
	assert_int_equal(outbox_registry_add_store(registry, &own_ops, w->db, &err), OUTBOX_OK);
	assert_int_equal(outbox_registry_add_transport(registry, &memory_transport_ops,
						       w->brokers[0], &err),
			 OUTBOX_OK);
	return registry;
}

/* Schema and lanes are enough to deliver; what needs operators' ops says that there are none. */
static void a_store_without_operators_is_relayed(void **state)
{
	struct world *w = world_new(1);
	struct outbox_registry *registry;
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay;
	struct outbox_stats stats;

	(void)state;
	own_ops = memory_store_ops;
	own_ops.open = own_open;
	memset(&own_ops.operate, 0, sizeof(own_ops.operate));
	registry = registry_of_own(w);
	config.registry = registry;
	config.purge_interval = OUTBOX_MINUTES;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_ENOTSUP);
	assert_non_null(strstr(err.message, "set purge_interval to OUTBOX_NEVER"));
	config.purge_interval = OUTBOX_NEVER;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	world_publish(w, "a", "k", "{}");
	assert_int_equal(outbox_relay_run_once(relay, &err), OUTBOX_OK);
	assert_int_equal(memory_broker_count(w->brokers[0]), 1);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_ENOTSUP);
	assert_non_null(strstr(err.message, "this store has no operator interface: "));
	outbox_relay_free(relay);
	assert_int_equal(outbox_monitor(w->url, registry, w->arena, &stats, &err), OUTBOX_ENOTSUP);
	assert_non_null(strstr(err.message, "this store has no operator interface: "));
	own_ops.operate.list = memory_store_ops.operate.list; /* half of it is a mistake */
	assert_int_equal(outbox_registry_add_store(registry, &own_ops, w->db, &err), OUTBOX_EINVAL);
	assert_non_null(strstr(err.message, "\"operate.append\" is missing"));
	outbox_registry_free(registry);
	world_free(w);
}

static _Atomic int tries;

/* Long enough for --until-idle to look at the store before a worker has its lanes. */
static int late_lease(struct outbox_store *store, const struct outbox_lease_request *request,
		      struct outbox_lease *ret_lease, struct outbox_error *err)
{
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	return memory_store_ops.lane.lease(store, request, ret_lease, err);
}

static int refusing_take(struct outbox_store *store, const char *target, int lane, const char *owner,
			 int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err)
{
	(void)store;
	(void)owner;
	(void)new_token;
	(void)ret_head;
	tries++;
	return outbox_fail(err, OUTBOX_EPROTO, "target %s, lane %d: numbered again", target, lane);
}

static int refusing_stats(struct outbox_store *store, struct outbox_arena *arena,
			  struct outbox_stats *ret_stats, struct outbox_error *err)
{
	int r = memory_store_ops.operate.stats(store, arena, ret_stats, err);

	for (size_t i = 0; r == OUTBOX_OK && i < ret_stats->n_targets; i++)
		ret_stats->targets[i].lanes[0].refused = "numbered again";
	return r;
}

/* A refusal is noted by the store when a relay is refused, and stays: a run does not end before its own was. */
static void until_idle_ends_when_its_own_lane_was_refused(void **state)
{
	struct world *w = world_new(1);
	struct outbox_registry *registry;
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay;

	(void)state;
	own_ops = memory_store_ops;
	own_ops.open = own_open;
	own_ops.lane.lease = late_lease;
	own_ops.lane.take_over = refusing_take;
	own_ops.operate.stats = refusing_stats;
	registry = registry_of_own(w);
	config.registry = registry;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	world_publish(w, "a", "k", "{}");
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_EPROTO);
	assert_non_null(strstr(err.message, "numbered again"));
	assert_int_not_equal(tries, 0);
	outbox_relay_free(relay);
	outbox_registry_free(registry);
	world_free(w);
}

static pthread_t test_thread;

/* A worker is late: --until-idle, which is called by the test, has looked by then. */
static int late_open(const struct outbox_store_config *config, bool create,
		     struct outbox_store **ret_store, struct outbox_error *err)
{
	if (!pthread_equal(pthread_self(), test_thread))
		nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	return own_open(config, create, ret_store, err);
}

static int lease_elsewhere(struct outbox_store *store, const struct outbox_lease_request *request,
			   struct outbox_lease *ret_lease, struct outbox_error *err)
{
	int r = memory_store_ops.lane.lease(store, request, ret_lease, err);

	if (r == OUTBOX_OK)
		store_lease_elsewhere(ret_lease, "memory:other", "other");
	return r;
}

/* Nothing waits in the store, but that says nothing before a worker knows whether it serves its target. */
static void until_idle_ends_when_its_workers_have_asked(void **state)
{
	struct world *w = world_new(1);
	struct outbox_registry *registry;
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay;

	(void)state;
	own_ops = memory_store_ops;
	test_thread = pthread_self();
	own_ops.open = late_open;
	own_ops.lane.lease = lease_elsewhere;
	registry = registry_of_own(w);
	config.registry = registry;
	config.lease = 400 * OUTBOX_MILLISECONDS;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_ECONFIG);
	assert_non_null(strstr(err.message, "takes no lanes"));
	outbox_relay_free(relay);
	outbox_registry_free(registry);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_without_operators_is_relayed),
		cmocka_unit_test(until_idle_ends_when_its_own_lane_was_refused),
		cmocka_unit_test(until_idle_ends_when_its_workers_have_asked),
	};

	return cmocka_run_group_tests_name("own_store", tests, NULL, NULL);
}
