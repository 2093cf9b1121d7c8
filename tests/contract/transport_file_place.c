/* SPDX-License-Identifier: Apache-2.0 */
/* An outage is a folder that went away, or a size limit. */

#include "transport_file_place.h"

#include "transport_lines.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Below the length of any line of the suite: n lines never fit in n times this. */
#define LINE_MIN 150

extern const struct outbox_transport_ops file_transport_ops;

struct file_place {
	char dir[LINES_DIR_MAX], away[LINES_DIR_MAX + 8];
	char path[LINES_DIR_MAX + 16], url[LINES_DIR_MAX + 24], missing[LINES_DIR_MAX + 40];
};

void limit_size(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void *setup(void)
{
	struct file_place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	lines_dir_make(place->dir);
	snprintf(place->away, sizeof(place->away), "%s.away", place->dir);
	snprintf(place->path, sizeof(place->path), "%s/out.jsonl", place->dir);
	snprintf(place->url, sizeof(place->url), "file:%s", place->path);
	snprintf(place->missing, sizeof(place->missing), "file:%s/no/such/out.jsonl", place->dir);
	return place;
}

static void teardown(void *state)
{
	struct file_place *place = state;

	lines_dir_remove(place->dir);
	free(place);
}

static const char *url(void *state)
{
	return ((struct file_place *)state)->url;
}

static const char *missing_url(void *state)
{
	return ((struct file_place *)state)->missing;
}

static void outage(void *state, bool on)
{
	struct file_place *place = state;

	if (on)
		assert_int_equal(rename(place->dir, place->away), 0);
	else
		rename(place->away, place->dir);
	limit_size(RLIM_INFINITY);
}

static void outage_after(void *state, size_t n)
{
	struct file_place *place = state;
	off_t length = lines_length(place->path);

	limit_size((rlim_t)(length > 0 ? length : 0) + n * LINE_MIN + 1);
}

static bool touched(void *state)
{
	return lines_length(((struct file_place *)state)->path) >= 0;
}

static void read_back(void *state, struct arrivals *arrivals)
{
	lines_read(((struct file_place *)state)->path, arrivals);
}

static const struct bad_url bad_urls[] = {
	{ "file:", "path" },
	{ "file:/tmp/", "path" },
	{ "file:?fsync=no", "path" },
	{ "file://elsewhere/tmp/out.jsonl", "local" },
	{ "file:out.jsonl?fsync=perhaps", "perhaps" },
	{ "file:out.jsonl?fsync=no&fsync=yes", "fsync" },
	{ "file:out.jsonl?sync=no", "sync" },
	{ "file:out.jsonl?fsync", "option" },
	{ "file:%zz", "%" },
	{ "stdout:out.jsonl", "file:out.jsonl" },
	{ NULL, NULL },
};

const struct transport_fixture file_fixture = {
	.name = "transport_file",
	.ops = &file_transport_ops,
	.setup = setup,
	.teardown = teardown,
	.url = url,
	.bad_urls = bad_urls,
	.missing_url = missing_url,
	.missing_status = OUTBOX_ECONFIG,
	.outage = outage,
	.outage_after = outage_after,
	.touched = touched,
	.read_back = read_back,
};

/* ---- for the tests of this driver alone ---------------------------------------------------- */

void file_case_begin(struct transport_case *c)
{
	*c = (struct transport_case){ .fixture = &file_fixture };
	c->arena = outbox_arena_new((size_t)256 << 20);
	assert_non_null(c->arena);
	c->place = setup();
	case_new_batch(c);
}

void file_case_end(struct transport_case *c)
{
	teardown(c->place);
	outbox_arena_free(c->arena);
}

const char *file_case_path(const struct transport_case *c)
{
	return ((const struct file_place *)c->place)->path;
}

void file_case_write(const struct transport_case *c, const void *data, size_t size)
{
	int fd = open(file_case_path(c), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
}
