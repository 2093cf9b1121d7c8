/* SPDX-License-Identifier: Apache-2.0 */
#include "store_world.h"

#include "core/key_hash.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>

#define START_TIME (1767225600 * SEC) /* 2026-01-01 */
#define ARENA_MAX ((size_t)256 << 20)

void world_ok(struct store_world *w, int status, const char *what, const char *file, int line)
{
	if (status != OUTBOX_OK) {
		print_error("%s:%d: %s: %s: %s\n", file, line, what, outbox_status_name(status),
			    w->err.message);
		_fail(file, line);
	}
}

outbox_time world_now(struct store_world *w)
{
	return w->clock.base.wall(&w->clock.base);
}

void world_step(struct store_world *w, outbox_time step)
{
	frozen_clock_step(&w->clock, step);
}

static int open_store(struct store_world *w, struct outbox_random *random,
		      struct outbox_store **ret_store)
{
	struct outbox_store_config config = {
		.struct_size = sizeof(config),
		.url = w->fixture->url(w->place),
		.clock = &w->clock.base,
		.random = random,
		.context = w->fixture->context ? w->fixture->context(w->place) : NULL,
	};

	return store_open(w->fixture->ops, &config, true, ret_store, &w->err);
}

struct outbox_store *world_open(struct store_world *w, struct outbox_random *random)
{
	struct outbox_store *store = NULL;

	OK(open_store(w, random, &store));
	assert_ptr_equal(store->ops, w->fixture->ops);
	return store;
}

struct store_world *world_new(const struct store_fixture *fixture, int lanes)
{
	struct outbox_init_options options = { .struct_size = sizeof(options) };
	struct store_world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->fixture = fixture;
	w->lanes = lanes > 0 ? lanes : 1;
	frozen_clock_init(&w->clock, START_TIME);
	random_init(&w->random, 4711);
	w->arena = outbox_arena_new(ARENA_MAX);
	assert_non_null(w->arena);
	w->place = fixture->make(&w->clock.base);
	w->store = world_open(w, &w->random.base);
	if (lanes >= 0) {
		options.lanes = w->lanes;
		OK(store_init(w->store, &options, &w->err));
	}
	return w;
}

void world_free(struct store_world *w)
{
	for (struct worker *k = w->workers, *next; k; k = next) {
		next = k->next;
		store_close(k->store);
		outbox_arena_free(k->arena);
		free(k);
	}
	store_close(w->store);
	w->fixture->destroy(w->place);
	outbox_arena_free(w->arena);
	free(w);
}

/* ---- publishing ---------------------------------------------------------------------------- */

int64_t world_publish_message(struct store_world *w, const struct outbox_message *m)
{
	int64_t seq = 0;

	OK(outbox_message_validate(m, 0, &w->err)); /* what the op may rely on */
	OK(store_append(w->store, m, 1, &seq, NULL, &w->err));
	assert_true(seq > 0);
	return seq;
}

int64_t world_publish(struct store_world *w, const char *key)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "t";
	m.key = key;
	m.data = "{}";
	m.size = 2;
	return world_publish_message(w, &m);
}

int64_t world_publish_type(struct store_world *w, const char *type)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = type;
	m.data = "{}";
	m.size = 2;
	return world_publish_message(w, &m);
}

int64_t world_publish_size(struct store_world *w, size_t size)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	char *data = outbox_arena_alloc(w->arena, size + 1);

	assert_non_null(data);
	memset(data, 'x', size);
	m.type = "t";
	m.content_type = "text/plain";
	m.data = data;
	m.size = size;
	return world_publish_message(w, &m);
}

int64_t world_publish_run(struct store_world *w, const char *key, size_t n)
{
	struct outbox_message *messages = outbox_arena_alloc(w->arena, n * sizeof(*messages));
	int64_t *seqs = outbox_arena_alloc(w->arena, n * sizeof(*seqs));

	assert_non_null(messages);
	assert_non_null(seqs);
	for (size_t i = 0; i < n; i++)
		messages[i] = (struct outbox_message){ .struct_size = sizeof(*messages),
						       .type = "t",
						       .key = key,
						       .data = "{}",
						       .size = 2 };
	OK(store_append(w->store, messages, n, seqs, NULL, &w->err));
	return seqs[0];
}

int64_t world_publish_many(struct store_world *w, size_t n)
{
	return world_publish_run(w, NULL, n);
}

const char *key_in_lane(const struct store_world *w, int lane, int i)
{
	static char keys[16][24];
	static unsigned next;
	char *key = keys[next++ % 16];

	for (int n = 0, found = -1; found < i; n++) {
		snprintf(key, sizeof(keys[0]), "key-%d", n);
		found += key_hash(key) % w->lanes == lane;
	}
	return key;
}

/* ---- targets ------------------------------------------------------------------------------- */

struct outbox_target_def target_def(const char *name)
{
	return (struct outbox_target_def){ .name = name, .start = OUTBOX_START_OLDEST };
}

int64_t world_target_put(struct store_world *w, const struct outbox_target_def *def)
{
	int64_t version = 0;

	OK(store_target_put(w->store, def, &version, &w->err));
	assert_true(version > 0);
	return version;
}

int64_t world_target(struct store_world *w, const char *name)
{
	struct outbox_target_def def = target_def(name);

	return world_target_put(w, &def);
}
