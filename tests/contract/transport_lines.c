/* SPDX-License-Identifier: Apache-2.0 */
#include "transport_lines.h"

#include "transport_case.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void lines_dir_make(char dir[LINES_DIR_MAX])
{
	snprintf(dir, LINES_DIR_MAX, "/tmp/outbox-transport-XXXXXX");
	assert_non_null(mkdtemp(dir));
}

void lines_dir_remove(const char *dir)
{
	DIR *entries = opendir(dir);
	struct dirent *entry;

	assert_non_null(entries);
	while ((entry = readdir(entries)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(dirfd(entries), entry->d_name, 0);
	closedir(entries);
	assert_int_equal(rmdir(dir), 0);
}

off_t lines_length(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : -1;
}

char *lines_slurp(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0, size;
	char *data;

	if (fd < 0) {
		assert_int_equal(errno, ENOENT);
		*ret_size = 0;
		return calloc(1, 1);
	}
	size = (size_t)lseek(fd, 0, SEEK_END);
	data = malloc(size + 1);
	assert_non_null(data);
	while (have < size) {
		ssize_t n = pread(fd, data + have, size - have, (off_t)have);

		assert_true(n > 0);
		have += (size_t)n;
	}
	close(fd);
	data[size] = '\0';
	*ret_size = size;
	return data;
}

static unsigned char sextet(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *place = strchr(digits, c);

	assert_true(c && place);
	return (unsigned char)(place - digits);
}

static size_t decode_base64(const char *text, unsigned char *out)
{
	size_t length = strlen(text), n = 0;
	unsigned bits = 0, count = 0;

	assert_int_equal(length % 4, 0);
	while (length && text[length - 1] == '=')
		length--;
	for (size_t i = 0; i < length; i++) {
		bits = bits << 6 | sextet(text[i]);
		count += 6;
		if (count >= 8) {
			count -= 8;
			out[n++] = (unsigned char)(bits >> count);
		}
	}
	return n;
}

static const char *member(const json_t *event, const char *name)
{
	const char *text = json_string_value(json_object_get(event, name));

	if (!text)
		fail_msg("a line has no \"%s\"", name);
	return text;
}

static void add_body(struct arrivals *arrivals, const json_t *event, const char *id)
{
	const json_t *data = json_object_get(event, "data");
	const json_t *bytes = json_object_get(event, "data_base64");

	if (bytes) {
		const char *text = json_string_value(bytes);
		unsigned char *out = malloc(strlen(text) + 1);

		assert_non_null(out);
		arrivals_add(arrivals, id, out, decode_base64(text, out));
		free(out);
	} else if (json_is_string(data)) {
		arrivals_add(arrivals, id, json_string_value(data), json_string_length(data));
	} else if (data) {
		char *text = json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY);

		assert_non_null(text);
		arrivals_add(arrivals, id, text, strlen(text));
		free(text);
	} else {
		arrivals_add(arrivals, id, "", 0);
	}
}

/* Headers are extension attributes where their names allow it, the others are in one of them. */
static void add_headers(struct arrivals *arrivals, json_t *event)
{
	const char *others = json_string_value(json_object_get(event, "outboxheaders"));
	json_t *rest = others ? json_loads(others, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *name;
	json_t *value;

	if (others)
		assert_true(json_is_object(rest));
	json_object_foreach(event, name,
			    value) if (json_is_string(value) && strncmp(name, "data", 4) != 0)
		arrivals_header(arrivals, name, json_string_value(value));
	json_object_foreach(rest, name, value)
		arrivals_header(arrivals, name, json_string_value(value));
	json_decref(rest);
}

static void add_line(struct arrivals *arrivals, const char *line, size_t size)
{
	json_error_t error;
	json_t *event = json_loadb(line, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);

	if (!event)
		fail_msg("not a line of JSON: %s: %.*s", error.text, (int)(size < 200 ? size : 200),
			 line);
	assert_string_equal(member(event, "specversion"), "1.0");
	member(event, "type");
	member(event, "source");
	add_body(arrivals, event, member(event, "id"));
	add_headers(arrivals, event);
	json_decref(event);
}

void lines_read(const char *path, struct arrivals *arrivals)
{
	size_t size;
	char *data = lines_slurp(path, &size), *line = data;

	if (size)
		assert_int_equal(data[size - 1], '\n');
	while (line < data + size) {
		char *newline = memchr(line, '\n', size - (size_t)(line - data));

		add_line(arrivals, line, (size_t)(newline - line));
		line = newline + 1;
	}
	free(data);
}
