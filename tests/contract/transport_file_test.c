/* SPDX-License-Identifier: Apache-2.0 */
/* file: what only files have: torn tails, foreign files, rotation, locks. */

#include "transport_file_place.h"
#include "transport_lines.h"

#include "transport/transport.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Publish n messages through a transport of its own. */
static void publish(struct transport_case *c, const char *prefix, size_t n)
{
	struct outbox_transport *transport = case_connect(c);

	case_new_batch(c);
	case_messages(c, prefix, 0, n);
	case_publish_acked(c, transport);
	transport_close(transport);
}

static void assert_content(const struct transport_case *c, const char *data, size_t size)
{
	size_t have;
	char *content = lines_slurp(file_case_path(c), &have);

	assert_int_equal(have, size);
	if (size)
		assert_memory_equal(content, data, size);
	free(content);
}

/* Cut the content at `cut`: connecting leaves its first `whole` bytes; publishing works on. */
static void torn_at(struct transport_case *c, const char *content, size_t cut, size_t whole)
{
	struct outbox_transport *transport;

	file_case_write(c, content, cut);
	transport = case_connect(c);
	assert_content(c, content, whole);
	transport_close(transport);
}

static void torn_tail_is_cut_at_every_position(void **state)
{
	struct transport_case c;
	char *content;
	size_t size, whole, lines = 3;

	(void)state;
	file_case_begin(&c);
	publish(&c, "a", lines);
	content = lines_slurp(file_case_path(&c), &size);
	whole = (size_t)((char *)memrchr(content, '\n', size - 1) - content) + 1;
	for (size_t cut = whole; cut < size; cut++)
		torn_at(&c, content, cut, whole);
	torn_at(&c, content, size, size);

	/* What is published next is a line of its own. */
	file_case_write(&c, content, size - 5);
	publish(&c, "b", 1);
	case_read_back(&c);
	assert_int_equal(c.arrivals.count, lines);
	assert_non_null(case_find(&c, "b-0"));
	assert_null(case_find(&c, "a-2"));
	free(content);
	file_case_end(&c);
}

static void torn_first_line_is_cut(void **state)
{
	struct transport_case c;
	char *content;
	size_t size;

	(void)state;
	file_case_begin(&c);
	publish(&c, "a", 1);
	content = lines_slurp(file_case_path(&c), &size);
	torn_at(&c, content, 1, 0);
	torn_at(&c, content, size / 2, 0);
	torn_at(&c, content, size - 1, 0);
	free(content);
	file_case_end(&c);
}

/* Longer than what is read at once while looking for the last newline. */
static void long_torn_tail_is_cut(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	size_t size, whole, large = 100000;
	char *content, *text = malloc(large);

	(void)state;
	file_case_begin(&c);
	publish(&c, "a", 2);
	whole = (size_t)lines_length(file_case_path(&c));
	assert_non_null(text);
	memset(text, 'x', large);
	case_new_batch(&c);
	case_message(&c, "large", 1)->data = text;
	c.messages[0].size = large;
	c.messages[0].content_type = "text/plain";
	transport = case_connect(&c);
	case_publish_acked(&c, transport);
	transport_close(transport);
	content = lines_slurp(file_case_path(&c), &size);
	for (size_t cut = size - 1; cut > whole; cut = cut > 4099 ? cut - 4099 : 0)
		torn_at(&c, content, cut, whole);
	/* The newline on both sides of the blocks in which the end is read. */
	for (size_t cut = whole + 16384 - 2; cut <= whole + 16384 + 2; cut++)
		torn_at(&c, content, cut, whole);
	free(content);
	free(text);
	file_case_end(&c);
}

static void zeros_of_a_power_cut_are_cut(void **state)
{
	static const char zeros[5000];
	struct transport_case c;
	char *content;
	size_t size;
	FILE *file;

	(void)state;
	file_case_begin(&c);
	publish(&c, "a", 2);
	content = lines_slurp(file_case_path(&c), &size);
	file = fopen(file_case_path(&c), "ae");
	assert_non_null(file);
	assert_int_equal(fwrite(zeros, 1, sizeof(zeros), file), sizeof(zeros));
	fclose(file);
	transport_close(case_connect(&c));
	assert_content(&c, content, size);
	free(content);
	file_case_end(&c);
}

/* A writer dies between two batches of ours. */
static void torn_tail_of_another_writer_is_cut_at_publish(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	FILE *file;

	(void)state;
	file_case_begin(&c);
	transport = case_connect(&c);
	case_messages(&c, "a", 0, 4);
	c.batch.count = 2;
	case_publish_acked(&c, transport);
	file = fopen(file_case_path(&c), "ae");
	assert_non_null(file);
	fputs("{\"specversion\":\"1.0\",\"id\":\"x", file);
	fclose(file);
	c.batch.items += 2;
	case_publish_acked(&c, transport);
	transport_close(transport);
	case_read_back(&c);
	c.batch.items -= 2;
	c.batch.count = 4;
	assert_arrived_in_order(&c);
	file_case_end(&c);
}

static void refused_and_untouched(struct transport_case *c, const char *content, size_t size)
{
	struct outbox_transport *transport = case_open(c, file_fixture.url(c->place), 0);
	struct outbox_error err = OUTBOX_ERROR_INIT;

	file_case_write(c, content, size);
	assert_int_equal(connect_to(transport, &err), OUTBOX_ECONFIG);
	assert_non_null(strstr(err.message, "out.jsonl"));
	assert_content(c, content, size);
	transport_close(transport);
}

static void foreign_files_are_not_touched(void **state)
{
	static const char *const contents[] = {
		"a letter without an end",  "a letter\n",      "{\"settings\":true}",
		"{\n\"settings\": true\n}", "SQLite format 3", "\n",
	};
	static const char binary[] = "SQLite format 3\0\n\0\0\0\0\0";
	struct transport_case c;

	(void)state;
	file_case_begin(&c);
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++)
		refused_and_untouched(&c, contents[i], strlen(contents[i]));
	refused_and_untouched(&c, binary, sizeof(binary));
	file_case_end(&c);
}

static void folders_and_pipes_are_refused(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	char path[128];

	(void)state;
	file_case_begin(&c);
	snprintf(path, sizeof(path), "%s", file_case_path(&c));
	transport = case_open(&c, file_fixture.url(c.place), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_ECONFIG);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_ECONFIG);
	transport_close(transport);
	file_case_end(&c);
}

static void pretty_json_is_one_line(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	struct outbox_message *m;
	size_t size, newlines = 0;
	char *content;

	(void)state;
	file_case_begin(&c);
	m = case_message(&c, "pretty", 1);
	m->data = "{\n\t\"n\": [\r\n 1,\n 2 ]\n}\n";
	m->size = strlen(m->data);
	transport = case_connect(&c);
	case_publish_acked(&c, transport);
	transport_close(transport);
	content = lines_slurp(file_case_path(&c), &size);
	for (size_t i = 0; i < size; i++)
		newlines += content[i] == '\n';
	assert_int_equal(newlines, 1);
	free(content);
	case_read_back(&c);
	assert_string_equal(c.arrivals.items[0].body, "{\"n\":[1,2]}");
	file_case_end(&c);
}

static void rotation_is_followed(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	struct arrivals old = { 0 };
	char moved[128];
	struct stat st;

	(void)state;
	file_case_begin(&c);
	snprintf(moved, sizeof(moved), "%s.1", file_case_path(&c));
	transport = case_connect(&c);
	case_messages(&c, "a", 0, 4);
	c.batch.count = 2;
	case_publish_acked(&c, transport);
	assert_int_equal(rename(file_case_path(&c), moved), 0);
	c.batch.items += 2;
	case_publish_acked(&c, transport);
	old.arena = c.arena;
	lines_read(moved, &old);
	assert_int_equal(old.count, 2);
	case_read_back(&c);
	assert_arrived_in_order(&c);
	assert_int_equal(stat(file_case_path(&c), &st), 0);
	assert_int_equal(st.st_mode & 0777 & ~0640u, 0);

	/* With a new file in its place, as logrotate's `create` does it. */
	assert_int_equal(rename(file_case_path(&c), moved), 0);
	file_case_write(&c, "", 0);
	case_publish_acked(&c, transport);
	case_read_back(&c);
	assert_arrived_in_order(&c);

	/* Removed, not moved: the same. */
	assert_int_equal(unlink(file_case_path(&c)), 0);
	case_publish_acked(&c, transport);
	case_read_back(&c);
	assert_arrived_in_order(&c);
	transport_close(transport);
	file_case_end(&c);
}

static void a_stuck_writer_costs_the_deadline_only(void **state)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;
	int fd;

	(void)state;
	file_case_begin(&c);
	publish(&c, "a", 1);
	length = lines_length(file_case_path(&c));
	transport = case_connect(&c);
	fd = open(file_case_path(&c), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	case_new_batch(&c);
	case_messages(&c, "b", 0, 1);
	assert_int_equal(transport->ops->publish(transport, &c.batch, clock->mono(clock) + 20000,
						 NULL),
			 OUTBOX_ETIMEDOUT);
	assert_int_equal(c.batch.items[0]->verdict, OUTBOX_VERDICT_UNSET);
	assert_int_equal(lines_length(file_case_path(&c)), length);
	transport->ops->disconnect(transport);
	assert_int_equal(transport->ops->connect(transport, clock->mono(clock) + 20000, NULL),
			 OUTBOX_ETIMEDOUT);
	close(fd);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_publish_acked(&c, transport);
	transport_close(transport);
	file_case_end(&c);
}

static int check_level(struct transport_case *c, const char *options, const char *says)
{
	char url[256], text[256];
	struct outbox_transport *transport;
	int level;

	snprintf(url, sizeof(url), "%s%s", file_fixture.url(c->place), options);
	transport = case_open(c, url, 0);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	level = transport_check(transport, soon(), text, sizeof(text));
	assert_non_null(strstr(text, says));
	transport_close(transport);
	return level;
}

static void check_tells_about_fsync(void **state)
{
	struct transport_case c;

	(void)state;
	file_case_begin(&c);
	assert_int_equal(check_level(&c, "", "fdatasync"), 0);
	assert_int_equal(check_level(&c, "?fsync=yes", "fdatasync"), 0);
	assert_int_equal(check_level(&c, "?fsync=no", "power cut"), 2);
	file_case_end(&c);
}

static void other_envelopes_are_refused(void **state)
{
	struct outbox_transport *transport = NULL;
	struct transport_case c;

	(void)state;
	file_case_begin(&c);
	transport_close(case_open(&c, file_fixture.url(c.place), OUTBOX_ENVELOPE_EXTERNAL));
	assert_int_equal(case_try_open(&c, file_fixture.url(c.place), OUTBOX_ENVELOPE_NATIVE,
				       &transport, NULL),
			 OUTBOX_ECONFIG);
	assert_int_equal(case_try_open(&c, file_fixture.url(c.place), OUTBOX_ENVELOPE_CE_BINARY,
				       &transport, NULL),
			 OUTBOX_ECONFIG);
	assert_null(transport);
	file_case_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(torn_tail_is_cut_at_every_position),
		cmocka_unit_test(torn_first_line_is_cut),
		cmocka_unit_test(long_torn_tail_is_cut),
		cmocka_unit_test(zeros_of_a_power_cut_are_cut),
		cmocka_unit_test(torn_tail_of_another_writer_is_cut_at_publish),
		cmocka_unit_test(foreign_files_are_not_touched),
		cmocka_unit_test(folders_and_pipes_are_refused),
		cmocka_unit_test(pretty_json_is_one_line),
		cmocka_unit_test(rotation_is_followed),
		cmocka_unit_test(a_stuck_writer_costs_the_deadline_only),
		cmocka_unit_test(check_tells_about_fsync),
		cmocka_unit_test(other_envelopes_are_refused),
	};

	return cmocka_run_group_tests_name("transport_file", tests, NULL, NULL);
}
