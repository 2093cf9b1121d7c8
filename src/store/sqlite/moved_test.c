/* SPDX-License-Identifier: Apache-2.0 */
/* The file is moved, removed or replaced while it is open: nobody goes on with it, and nothing is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "store/sqlite/place_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int lease(struct place *p)
{
	struct outbox_lease_request request = {
		.target = "events", .owner = "me", .duration = OUTBOX_MINUTES, .route_version = 1
	};
	struct outbox_lease lease;

	return sqlite_lease(p->store, &request, &lease, &p->err);
}

static int look_at_lanes(struct place *p)
{
	struct outbox_stats stats;

	return sqlite_stats(p->store, p->arena, &stats, &p->err);
}

static void assert_away(struct place *p)
{
	int (*const calls[])(struct place *) = { lease, look_at_lanes };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		p->err.message[0] = '\0';
		assert_int_equal(calls[i](p), OUTBOX_ECONN);
		assert_non_null(strstr(p->err.message, p->file));
		assert_non_null(strstr(p->err.message, "moved, removed or replaced"));
	}
}

static void assert_well(struct place *p)
{
	assert_int_equal(lease(p), OUTBOX_OK);
	assert_int_equal(look_at_lanes(p), OUTBOX_OK);
}

static int reopen(struct place *p, bool create)
{
	struct outbox_store_config config = { .struct_size = sizeof(config),
					      .url = p->url,
					      .clock = &p->clock.base,
					      .random = &p->random.base };

	sqlite_close(p->store);
	p->store = NULL;
	return sqlite_open(&config, create, &p->store, &p->err);
}

static void a_moved_file_is_noticed_and_comes_back_whole(void **state)
{
	struct place *p = *state;
	char away[128];

	snprintf(away, sizeof(away), "%s/away.db", p->folder);
	place_publish(p, "a", "k", "m-1");
	assert_well(p);
	assert_int_equal(rename(p->file, away), 0);
	assert_away(p);
	/* The last connection closes: the -wal stays, and nobody makes a new file beside it. */
	assert_int_equal(reopen(p, true), OUTBOX_ENOTFOUND);
	assert_non_null(strstr(p->err.message, "its -wal exists: the file was moved or removed"));
	assert_non_null(strstr(p->err.message, "put it back beside the -wal"));
	assert_int_equal(reopen(p, false), OUTBOX_ENOTFOUND);
	assert_non_null(strstr(p->err.message, "its -wal exists: the file was moved or removed"));
	assert_int_not_equal(access(p->file, F_OK), 0);

	assert_int_equal(rename(away, p->file), 0);
	assert_int_equal(reopen(p, false), OUTBOX_OK);
	assert_well(p);
	assert_int_equal(place_drain(p, "events"), 1);
}

/* The same connection may go on: it is the same file. */
static void a_file_that_was_back_in_time(void **state)
{
	struct place *p = *state;
	char away[128];

	snprintf(away, sizeof(away), "%s/away.db", p->folder);
	place_publish(p, "a", "k", "m-1");
	assert_int_equal(rename(p->file, away), 0);
	assert_away(p);
	place_publish(p, "a", "k", "m-2");
	assert_int_equal(rename(away, p->file), 0);
	assert_well(p);
	assert_int_equal(place_drain(p, "events"), 2);
	assert_int_equal(place_number(p, "SELECT count(*) FROM outbox_message"), 2);
}

static void a_replaced_file_is_noticed(void **state)
{
	struct place *p = *state;
	char copy[128], sql[160];

	snprintf(copy, sizeof(copy), "%s/copy.db", p->folder);
	snprintf(sql, sizeof(sql), "VACUUM INTO '%s'", copy);
	assert_int_equal(place_sql(p, sql), SQLITE_OK);
	assert_well(p);
	assert_int_equal(rename(copy, p->file), 0);
	assert_away(p);
}

static void nothing_is_copied_into_a_moved_file(void **state)
{
	struct place *p = *state;
	char away[128];

	snprintf(away, sizeof(away), "%s/away.db", p->folder);
	assert_int_equal(place_sql(p, "PRAGMA wal_autocheckpoint = 0; CREATE TABLE big (x);"
				      "INSERT INTO big VALUES (zeroblob(2000000))"),
			 SQLITE_OK);
	assert_int_equal(rename(p->file, away), 0);
	assert_int_equal(sqlite_maintain(p->store, &p->err), OUTBOX_ECONN);
	assert_int_equal(rename(away, p->file), 0);
	assert_int_equal(sqlite_maintain(p->store, &p->err), OUTBOX_OK);
	assert_int_equal(place_number(p, "SELECT length(x) FROM big"), 2000000);
}

static void another_device_is_noticed(void **state)
{
	struct place *p = *state;

	assert_well(p);
	sqlite_of(p->store)->device++;
	assert_away(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_moved_file_is_noticed_and_comes_back_whole,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(a_file_that_was_back_in_time, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(a_replaced_file_is_noticed, place_setup_ready,
						place_teardown),
		cmocka_unit_test_setup_teardown(nothing_is_copied_into_a_moved_file,
						place_setup_ready, place_teardown),
		cmocka_unit_test_setup_teardown(another_device_is_noticed, place_setup_ready,
						place_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
