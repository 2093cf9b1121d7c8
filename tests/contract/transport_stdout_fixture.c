/* SPDX-License-Identifier: Apache-2.0 */
/* stdout: under the transport contract, standard output being a file while a case runs. */

#include "transport_case.h"
#include "transport_lines.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const struct outbox_transport_ops file_transport_ops;

struct place {
	char dir[LINES_DIR_MAX], path[LINES_DIR_MAX + 16];
	int saved;
};

static void *setup(void)
{
	struct place *place = calloc(1, sizeof(*place));
	int fd;

	assert_non_null(place);
	lines_dir_make(place->dir);
	snprintf(place->path, sizeof(place->path), "%s/stdout", place->dir);
	fflush(stdout);
	place->saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	fd = open(place->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_true(dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
	close(fd);
	return place;
}

static void teardown(void *state)
{
	struct place *place = state;

	assert_true(dup2(place->saved, STDOUT_FILENO) == STDOUT_FILENO);
	close(place->saved);
	lines_dir_remove(place->dir);
	free(place);
}

static const char *url(void *state)
{
	(void)state;
	return "stdout:";
}

static bool touched(void *state)
{
	return lines_length(((struct place *)state)->path) > 0;
}

static void read_back(void *state, struct arrivals *arrivals)
{
	lines_read(((struct place *)state)->path, arrivals);
}

static const struct bad_url bad_urls[] = {
	{ "stdout:x", "stdout:" },
	{ "stdout://host", "stdout:" },
	{ "stdout:?colour=no", "colour" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_stdout",
	.ops = &file_transport_ops,
	.flags = CONTRACT_NO_OUTAGE | CONTRACT_NO_MISSING,
	.setup = setup,
	.teardown = teardown,
	.url = url,
	.bad_urls = bad_urls,
	.touched = touched,
	.read_back = read_back,
};

int main(void)
{
	return transport_contract_run(&fixture);
}
