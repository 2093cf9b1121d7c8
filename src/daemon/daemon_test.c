/* SPDX-License-Identifier: Apache-2.0 */
/* The admin server hears requests before the sources are started: what is asked of a daemon then. */
#include "config/problems.h"
#include "daemon/configure.h"
#include "daemon/daemon.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char text[] = "sources:\n"
			   "  - { name: shop, store: 'sqlite:/nowhere/shop.db' }\n"
			   "targets:\n"
			   "  - { name: events, to: 'null:', start: oldest }\n";

struct world {
	char file[64];
	struct daemon_setup setup;
	struct daemon *daemon;
	struct problems *problems;
};

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct config_input input = { .secrets = true };
	struct config *config = NULL;
	int fd;

	strcpy(w->file, "/tmp/outbox-daemon-XXXXXX");
	fd = mkstemp(w->file);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	input.file = w->setup.file = w->file;
	w->problems = calloc(1, sizeof(*w->problems));
	assert_int_equal(configure(&input, &config, w->problems, NULL), OUTBOX_OK);
	assert_int_equal(daemon_new(&w->setup, config, &w->daemon, NULL), OUTBOX_OK);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	daemon_free(w->daemon);
	unlink(w->file);
	free(w->problems);
	free(w);
	return 0;
}

static void wait_for(struct daemon *daemon, enum daemon_phase phase)
{
	for (int i = 0; i < 6000 && daemon_phase(daemon) != phase; i++)
		poll(NULL, 0, 10);
	assert_int_equal(daemon_phase(daemon), phase);
}

static void test_drain_before_the_start(void **state)
{
	struct world *w = *state;

	daemon_drain(w->daemon);
	assert_int_equal(daemon_start(w->daemon, NULL), OUTBOX_OK);
	wait_for(w->daemon, DAEMON_DONE);
}

static void test_reload_before_the_start(void **state)
{
	struct world *w = *state;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct daemon_reloaded reloaded;
	struct outbox_arena *arena = outbox_arena_new(1 << 20);
	const struct daemon_source *sources;
	size_t count;

	assert_int_equal(daemon_reload(w->daemon, false, w->problems, &reloaded, &err),
			 OUTBOX_ECONFLICT);
	assert_string_equal(err.message, "the relay is starting");
	assert_int_equal(daemon_start(w->daemon, NULL), OUTBOX_OK);
	assert_int_equal(daemon_sources(w->daemon, arena, &sources, &count, NULL), OUTBOX_OK);
	assert_int_equal(count, 1);
	assert_int_equal(daemon_reload(w->daemon, false, w->problems, &reloaded, NULL), OUTBOX_OK);
	assert_int_equal(reloaded.kept, 1);
	outbox_arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_drain_before_the_start, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reload_before_the_start, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
