/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "relay/registry.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum world_kind world_kind;

#define START ((outbox_time)1700000000 * OUTBOX_SECONDS)
#define STEPS_MAX 2000000

#define must(call)                                              \
	do {                                                    \
		struct outbox_error err = OUTBOX_ERROR_INIT;    \
		if (call)                                       \
			fail_msg("%s: %s", #call, err.message); \
	} while (0)

static void keep_log(void *context, const struct outbox_log_event *event)
{
	struct world *w = context;
	size_t used = strlen(w->log);

	snprintf(w->log + used, sizeof(w->log) - used, "%s\n", event->text);
}

static void choose_url(struct world *w)
{
	static int number;

	if (world_kind == WORLD_POSTGRES) {
		/* the server is thrown away after the tests, and with it the schemas */
		snprintf(w->url, sizeof(w->url), "%s?clock=client&schema=world_%d_%d",
			 getenv("OUTBOX_TEST_POSTGRES"), (int)getpid(), ++number);
	} else if (world_kind == WORLD_SQLITE) {
		snprintf(w->folder, sizeof(w->folder), "%s/outbox-world-XXXXXX",
			 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
		assert_non_null(mkdtemp(w->folder));
		snprintf(w->url, sizeof(w->url), "sqlite:%s/world.db", w->folder);
	} else {
		snprintf(w->url, sizeof(w->url), "memory:world");
		w->db = memory_db_new("world", &w->clock.base, 7);
	}
}

static void make_store(struct world *w, int lanes)
{
	struct outbox_init_options options = { .struct_size = sizeof(options), .lanes = lanes };

	choose_url(w);
	for (int i = 0; i < WORLD_BROKERS; i++) {
		must(outbox_registry_new(&w->registries[i], &err));
		must(memory_broker_new(&w->brokers[i], &err));
		must(outbox_registry_add_transport(w->registries[i], &memory_transport_ops,
						   w->brokers[i], &err));
		if (w->db)
			must(outbox_registry_add_store(w->registries[i], &memory_store_ops, w->db,
						       &err));
	}
	must(registry_open_store(w->registries[0], w->url, true, &w->clock.base, &w->random.base,
				 &w->store, &err));
	must(store_init(w->store, &options, &err));
}

struct world *world_new(int lanes)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	frozen_clock_init(&w->clock, START);
	random_init(&w->random, 42);
	w->arena = outbox_arena_new((size_t)64 << 20);
	make_store(w, lanes);
	return w;
}

void world_free(struct world *w)
{
	char command[300];

	for (int i = 0; i < WORLD_RELAYS; i++)
		world_kill(w, i);
	store_close(w->store);
	for (int i = 0; i < WORLD_BROKERS; i++) {
		outbox_registry_free(w->registries[i]);
		memory_broker_free(w->brokers[i]);
	}
	if (w->db)
		memory_db_free(w->db);
	outbox_arena_free(w->arena);
	if (w->folder[0]) {
		snprintf(command, sizeof(command), "rm -rf '%s'", w->folder);
		assert_int_equal(system(command), 0);
	}
	free(w);
}

struct outbox_relay_config world_config(struct world *w, struct outbox_target_config *target)
{
	struct outbox_relay_config c = OUTBOX_RELAY_CONFIG_INIT;

	*target = (struct outbox_target_config)OUTBOX_TARGET_CONFIG_INIT;
	target->name = "events";
	target->to = "memory:";
	c.store = w->url;
	c.targets = target;
	c.n_targets = 1;
	c.batch_messages = 10;
	c.clock = &w->clock.base;
	c.registry = w->registries[0];
	c.purge_interval = OUTBOX_NEVER;
	c.log = keep_log;
	c.log_context = w;
	return c;
}

void world_relay(struct world *w, int i, const struct outbox_relay_config *config)
{
	struct outbox_relay_config c = *config;
	char name[16];

	assert_null(w->relays[i]);
	snprintf(name, sizeof(name), "relay-%c", 'a' + i);
	c.instance = name;
	c.seed = (uint64_t)i + 1;
	must(outbox_relay_new(&w->relays[i], &c, &err));
	w->poll_max[i] = w->relays[i]->plan.targets[0].poll_max;
}

void world_relay_plain(struct world *w, int i)
{
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	world_relay(w, i, &config);
}

void world_kill(struct world *w, int i)
{
	struct outbox_relay *relay = w->relays[i];

	/* Its threads never started, so freeing it settles and releases nothing: as dead as killed. */
	w->relays[i] = outbox_relay_free(relay);
	w->stopped[i] = false;
}

struct worker *world_worker(struct world *w, int relay)
{
	return w->relays[relay]->threads[0].worker;
}

static outbox_time step_all(struct world *w)
{
	outbox_time next = OUTBOX_NEVER;

	for (int i = 0; i < WORLD_RELAYS; i++) {
		for (size_t t = 0; w->relays[i] && !w->stopped[i] && t < w->relays[i]->n_threads;
		     t++) {
			outbox_time at = worker_step(w->relays[i]->threads[t].worker);

			next = at < next ? at : next;
		}
	}
	return next;
}

/*
 * Looks that find nothing would take most of a long run's time on a real database. Nobody publishes meanwhile, and what is
 * due is woken up for: so they are rare until shortly before its end.
 */
static void look_rarely(struct world *w, bool rarely)
{
	for (int i = 0; i < WORLD_RELAYS; i++)
		for (size_t t = 0;
		     w->poll_max[i] && w->relays[i] && t < w->relays[i]->plan.n_targets; t++)
			w->relays[i]->plan.targets[t].poll_max =
				rarely ? 5 * OUTBOX_SECONDS : w->poll_max[i];
}

void world_run(struct world *w, outbox_time duration)
{
	outbox_time now = w->clock.base.mono(&w->clock.base), end = now + duration, next;

	for (int steps = 0; steps < STEPS_MAX; steps++) {
		look_rarely(w, end - now > 20 * OUTBOX_SECONDS);
		next = step_all(w);
		now = w->clock.base.mono(&w->clock.base);
		if (next <= now)
			continue;
		if (next > end)
			next = end;
		frozen_clock_step(&w->clock, next > now ? next - now : 0);
		if (next >= end)
			return;
	}
	fail_msg("the relays are busy for ever: %s", w->log);
}

void world_settle(struct world *w)
{
	for (int steps = 0; steps < STEPS_MAX; steps++)
		if (step_all(w) > w->clock.base.mono(&w->clock.base))
			return;
	fail_msg("the relays are busy for ever: %s", w->log);
}

void world_drain(struct world *w, int i, outbox_time timeout)
{
	outbox_time until = w->clock.base.mono(&w->clock.base) + timeout;
	struct worker *worker = world_worker(w, i);

	worker_drain(worker, until);
	for (int steps = 0; steps < STEPS_MAX && !worker_is_gone(worker); steps++) {
		outbox_time next = worker_step(worker), now = w->clock.base.mono(&w->clock.base);

		if (next > now && next != OUTBOX_NEVER)
			frozen_clock_step(&w->clock, next - now);
	}
	assert_true(worker_is_gone(worker));
}

int64_t world_publish_message(struct world *w, const struct outbox_message *message)
{
	int64_t seq = 0;

	must(outbox_message_validate(message, 0, &err));
	must(store_append(w->store, message, 1, &seq, NULL, &err));
	return seq;
}

int64_t world_publish(struct world *w, const char *type, const char *key, const char *data)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = type;
	m.key = key;
	m.data = data ? data : "{}";
	m.size = strlen(m.data);
	return world_publish_message(w, &m);
}

void world_publish_many(struct world *w, int n, int keys)
{
	char key[16];

	for (int i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "k%d", i % (keys ? keys : 1));
		world_publish(w, "order.placed", keys ? key : NULL, NULL);
	}
}

struct outbox_delivery world_delivery(struct world *w, const char *target, int64_t seq)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter),
					.target = target,
					.limit = 1000 };
	struct outbox_page page;

	outbox_arena_reset(w->arena);
	do {
		must(store_list(w->store, &filter, w->arena, &page, &err));
		for (size_t i = 0; i < page.count; i++)
			if (page.rows[i].seq == seq)
				return page.rows[i];
		filter.cursor = page.cursor;
	} while (filter.cursor);
	fail_msg("no delivery of %lld to %s", (long long)seq, target);
	return (struct outbox_delivery){ 0 };
}

void world_assert(struct world *w, const char *target, int64_t seq, int state, int why, int attempts)
{
	struct outbox_delivery d = world_delivery(w, target, seq);
	const char *is_why = d.why ? outbox_why_name(d.why) : "-";
	const char *want_why = why ? outbox_why_name(why) : "-";

	if (d.state != state || d.why != why || d.attempts != attempts)
		fail_msg("message %lld is %s (%s) after %d attempts, not %s (%s) after %d: %s",
			 (long long)seq, outbox_state_name(d.state), is_why, d.attempts,
			 outbox_state_name(state), want_why, attempts, d.error ? d.error : "");
}

struct outbox_target_stats world_stats(struct world *w, const char *target)
{
	struct outbox_stats stats;

	outbox_arena_reset(w->arena);
	must(store_stats(w->store, w->arena, &stats, &err));
	for (size_t i = 0; i < stats.n_targets; i++)
		if (!strcmp(stats.targets[i].name, target))
			return stats.targets[i];
	fail_msg("no target %s", target);
	return (struct outbox_target_stats){ 0 };
}

size_t world_act(struct world *w, int action, const char *target, int64_t seq, outbox_time until)
{
	struct outbox_delivery d = world_delivery(w, target, seq);
	const char *ids[] = { d.id };
	struct outbox_filter filter = {
		.struct_size = sizeof(filter), .ids = ids, .n_ids = 1, .target = target
	};
	struct outbox_act act = {
		.action = action, .actor = "test", .reason = "a test", .until = until, .filter = &filter
	};
	struct outbox_acted acted;

	must(store_act(w->store, &act, &acted, &err));
	return acted.done;
}

const char *world_arrived(struct world *w, int broker)
{
	size_t n = memory_broker_count(w->brokers[broker]);
	char *text = outbox_arena_alloc(w->arena, n * 21 + 1);

	for (size_t i = 0, used = 0; i < n; i++)
		used += (size_t)sprintf(text + used, "%s%lld", i ? " " : "",
					(long long)memory_broker_at(w->brokers[broker], i)->seq);
	return text;
}

void world_assert_order(struct world *w, int broker)
{
	size_t n = memory_broker_count(w->brokers[broker]);

	for (size_t i = 0; i < n; i++) {
		const struct memory_record *a = memory_broker_at(w->brokers[broker], i);
		bool first = true;

		for (size_t j = 0; j < i && first; j++)
			first = memory_broker_at(w->brokers[broker], j)->seq != a->seq;
		for (size_t j = 0; a->key && first && j < i; j++) {
			const struct memory_record *b = memory_broker_at(w->brokers[broker], j);

			if (b->key && !strcmp(a->key, b->key) && b->seq > a->seq)
				fail_msg("%lld of key %s came after %lld", (long long)a->seq,
					 a->key, (long long)b->seq);
		}
	}
}

struct outbox_relay_counts world_counts(struct world *w, int relay)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;

	outbox_relay_counts(w->relays[relay], &counts);
	return counts;
}

int world_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
	       size_t n_tests)
{
	const char *kind = argc > 1 ? argv[1] : "memory";

	world_kind = !strcmp(kind, "sqlite")     ? WORLD_SQLITE
		     : !strcmp(kind, "postgres") ? WORLD_POSTGRES
						 : WORLD_MEMORY;
	if (world_kind == WORLD_POSTGRES && !getenv("OUTBOX_TEST_POSTGRES")) {
		puts("OUTBOX_TEST_POSTGRES is not set (tests/support/with-postgres sets it)");
		return 77;
	}
	return _cmocka_run_group_tests(name, tests, n_tests, NULL, NULL);
}

struct outbox_relay_config world_threaded(struct world *w, struct outbox_target_config *target)
{
	struct outbox_relay_config config = world_config(w, target);

	config.clock = NULL;
	config.log = NULL;
	config.lease = 2 * OUTBOX_SECONDS;
	config.instance = "threads";
	return config;
}
