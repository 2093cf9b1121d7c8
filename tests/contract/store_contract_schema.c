/* SPDX-License-Identifier: Apache-2.0 */

/* Opening, and the schema: init, upgrade, drop, truncate, info. */

#include "store_world.h"

#include "store/store.h"

#include <stdio.h>

static struct outbox_store_info info_of(struct store_world *w)
{
	struct outbox_store_info info = { .schema_version = -1 };

	OK(store_info(w->store, &info, &w->err));
	return info;
}

static int init(struct store_world *w, int lanes)
{
	struct outbox_init_options options = { .struct_size = sizeof(options), .lanes = lanes };

	return store_init(w->store, &options, &w->err);
}

static void ops_are_complete(struct store_world *w)
{
	struct outbox_store_ops ops = *w->fixture->ops;

	OK(store_ops_check(w->fixture->ops, &w->err));
	ops.lane.settle_and_claim = NULL;
	assert_int_equal(store_ops_check(&ops, &w->err), OUTBOX_EINVAL);
	assert_non_null(strstr(w->err.message, "lane.settle_and_claim"));
	assert_null(store_close(NULL));
}

static void nothing_works_before_init(struct store_world *w)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_target_def def = target_def("a");
	struct outbox_stats stats;
	int64_t version = -1;

	m.type = "t";
	assert_int_equal(info_of(w).schema_version, 0);
	assert_int_equal(store_append(w->store, &m, 1, NULL, NULL, &w->err), OUTBOX_ESCHEMA);
	assert_int_equal(store_target_put(w->store, &def, &version, &w->err), OUTBOX_ESCHEMA);
	assert_int_equal(store_stats(w->store, w->arena, &stats, &w->err), OUTBOX_ESCHEMA);
	assert_int_equal(version, -1); /* written only on success */
	assert_true(w->err.message[0]);
}

static void init_twice_changes_nothing(struct store_world *w)
{
	int64_t seq;

	OK(init(w, 3));
	seq = world_publish(w, NULL);
	world_target(w, "a");
	OK(init(w, 3));
	OK(init(w, 0));
	assert_int_equal(info_of(w).lanes, 3);
	assert_int_equal(info_of(w).schema_version, info_of(w).program_version);
	assert_int_equal(world_messages(w), 1);
	assert_state(w, "a", seq, OUTBOX_PENDING, OUTBOX_NEW);
}

static void init_with_other_lanes_is_refused(struct store_world *w)
{
	OK(init(w, 4));
	assert_int_not_equal(init(w, 2), OUTBOX_OK);
	assert_int_equal(info_of(w).lanes, 4);
}

static void init_checks_the_number_of_lanes(struct store_world *w)
{
	assert_int_not_equal(init(w, OUTBOX_LANES_MAX + 1), OUTBOX_OK);
	assert_int_not_equal(init(w, -1), OUTBOX_OK);
	assert_int_equal(info_of(w).schema_version, 0);
	OK(init(w, OUTBOX_LANES_MAX));
}

static void a_newer_schema_is_refused(struct store_world *w)
{
	int newer = info_of(w).program_version + 1, from = -1;
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "t";
	w->fixture->fake_schema(w->place, newer);
	assert_int_equal(init(w, 0), OUTBOX_ESCHEMA);
	assert_non_null(strstr(w->err.message, "newer"));
	assert_int_equal(store_upgrade(w->store, NULL, &from, &w->err), OUTBOX_ESCHEMA);
	assert_int_equal(from, -1);
	assert_int_equal(store_append(w->store, &m, 1, NULL, NULL, &w->err), OUTBOX_ESCHEMA);
	assert_int_equal(info_of(w).schema_version, newer);
}

static void upgrade_of_the_newest_does_nothing(struct store_world *w)
{
	struct outbox_init_options options = { .struct_size = sizeof(options) };
	int from = -1;

	world_publish(w, NULL);
	OK(store_upgrade(w->store, &options, &from, &w->err));
	assert_int_equal(from, info_of(w).program_version);
	assert_int_equal(world_messages(w), 1);
}

static void upgrade_without_a_schema_is_refused(struct store_world *w)
{
	struct outbox_init_options options = { .struct_size = sizeof(options) };
	int from = -1;

	assert_int_equal(store_upgrade(w->store, &options, &from, &w->err), OUTBOX_ESCHEMA);
	assert_int_equal(info_of(w).schema_version, 0);
}

static void drop_removes_everything(struct store_world *w)
{
	world_publish(w, NULL);
	world_target(w, "a");
	OK(store_drop(w->store, &w->err));
	assert_int_equal(info_of(w).schema_version, 0);
	OK(init(w, 2));
	w->lanes = 2;
	assert_int_equal(info_of(w).lanes, 2);
	assert_int_equal(world_messages(w), 0);
	world_target(w, "a");
	assert_int_equal(world_list(w, &(struct outbox_filter){ .limit = 10 }).count, 0);
}

static void truncate_keeps_the_schema(struct store_world *w)
{
	struct worker *k;
	int64_t before, seq;

	world_target(w, "a");
	before = world_publish(w, NULL);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 1, before);
	OK(store_truncate(w->store, &w->err));
	assert_int_equal(info_of(w).schema_version, info_of(w).program_version);
	assert_int_equal(world_messages(w), 0);

	world_target(w, "b");
	seq = world_publish(w, NULL);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 1, seq);
}

static void a_missing_database_is_not_made_by_opening(struct store_world *w)
{
	struct outbox_store_config config = {
		.struct_size = sizeof(config),
		.url = w->fixture->missing_url(w->place),
		.clock = &w->clock.base,
		.random = &w->random.base,
		.context = w->fixture->context ? w->fixture->context(w->place) : NULL,
	};
	struct outbox_store *store = NULL;

	for (int i = 0; i < 2; i++)
		assert_int_equal(store_open(w->fixture->ops, &config, false, &store, &w->err),
				 OUTBOX_ENOTFOUND);
	assert_null(store);
}

static void an_unknown_option_is_refused(struct store_world *w)
{
	char url[256];
	struct outbox_store_config config = {
		.struct_size = sizeof(config),
		.url = url,
		.clock = &w->clock.base,
		.random = &w->random.base,
		.context = w->fixture->context ? w->fixture->context(w->place) : NULL,
	};
	struct outbox_store *store = NULL;

	snprintf(url, sizeof(url), "%s%ccolour=blue", w->fixture->url(w->place),
		 strchr(w->fixture->url(w->place), '?') ? '&' : '?');
	assert_int_equal(store_open(w->fixture->ops, &config, true, &store, &w->err), OUTBOX_ECONFIG);
	assert_non_null(strstr(w->err.message, "colour"));
	assert_null(store);
}

static void two_connections_see_one_database(struct store_world *w)
{
	struct outbox_store *other = world_open(w, &w->random.base), *own = w->store;
	int64_t seq = world_publish(w, NULL);

	world_target(w, "a");
	w->store = other;
	assert_state(w, "a", seq, OUTBOX_PENDING, OUTBOX_NEW);
	w->store = own;
	store_close(other);
}

const struct store_case schema_cases[] = {
	{ "ops_are_complete", ops_are_complete, 0, 0 },
	{ "nothing_works_before_init", nothing_works_before_init, -1, 0 },
	{ "init_twice_changes_nothing", init_twice_changes_nothing, -1, 0 },
	{ "init_with_other_lanes_is_refused", init_with_other_lanes_is_refused, -1, 0 },
	{ "init_checks_the_number_of_lanes", init_checks_the_number_of_lanes, -1, 0 },
	{ "a_newer_schema_is_refused", a_newer_schema_is_refused, 0, 0 },
	{ "upgrade_of_the_newest_does_nothing", upgrade_of_the_newest_does_nothing, 0, 0 },
	{ "upgrade_without_a_schema_is_refused", upgrade_without_a_schema_is_refused, -1, 0 },
	{ "drop_removes_everything", drop_removes_everything, 0, 0 },
	{ "truncate_keeps_the_schema", truncate_keeps_the_schema, 0, 0 },
	{ "a_missing_database_is_not_made_by_opening", a_missing_database_is_not_made_by_opening, 0,
	  STORE_MISSING },
	{ "an_unknown_option_is_refused", an_unknown_option_is_refused, 0, 0 },
	{ "two_connections_see_one_database", two_connections_see_one_database, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
