/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The file transport on a file that holds anything. A model of a few lines says what must be left of
 * it: whole lines always, an unfinished line only if it cannot be ours, in which case nothing is
 * touched and connecting fails. What is published then is appended in whole lines.
 *
 * Two bytes say how much filler goes into the content, a third one where, so that a small input makes
 * lines that are longer than the driver's buffer.
 */

#include "base/cleanup.h"
#include "fuzz.h"
#include "transport/transport.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_START "{\"specversion\""

extern const struct outbox_transport_ops file_transport_ops;

static char path[128];

struct content {
	char *data;
	size_t size;
};

static void write_file(const struct content *content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK(write(fd, content->data, content->size) == (ssize_t)content->size);
	close(fd);
}

static struct content read_file(void)
{
	struct content content = { malloc((size_t)1 << 20), 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	CHECK(content.data && fd >= 0);
	n = read(fd, content.data, (size_t)1 << 20);
	CHECK(n >= 0);
	content.size = (size_t)n;
	close(fd);
	return content;
}

static struct content make_content(struct input *in)
{
	size_t fill = input_byte(in) + ((size_t)input_byte(in) << 8);
	size_t at = input_byte(in);
	struct content content = { malloc(in->size + fill + 1), in->size + fill };

	CHECK(content.data);
	at = at < in->size ? at : in->size;
	if (at)
		memcpy(content.data, in->data, at);
	memset(content.data + at, 'x', fill);
	if (in->size > at)
		memcpy(content.data + at + fill, in->data + at, in->size - at);
	return content;
}

/* How many bytes stay; -1: it must be refused. */
static ssize_t model(const struct content *content)
{
	const char *newline = content->size ? memrchr(content->data, '\n', content->size) : NULL;
	size_t whole = newline ? (size_t)(newline + 1 - content->data) : 0;
	size_t n = content->size - whole;

	if (content->size == 0)
		return 0;
	if (content->data[0] != '{')
		return -1;
	if (n == 0 || content->data[whole] == '\0')
		return (ssize_t)whole;
	n = n < strlen(LINE_START) ? n : strlen(LINE_START);
	return memcmp(content->data + whole, LINE_START, n) == 0 ? (ssize_t)whole : -1;
}

static void check_line(const char *line, size_t size, const char *id)
{
	json_t *root = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
	const char *found = json_string_value(json_object_get(root, "id"));

	CHECK(found && strcmp(found, id) == 0);
	json_decref(root);
}

/* Two messages, the second of them refused by the encoder: one whole line. */
static void publish(struct outbox_transport *file, const char *id)
{
	struct outbox_message good = { .type = "t", .id = id, .source = "/s" }, bad = good;
	struct outbox_item items[2] = { { .message = &good, .created_at = 1 }, { .message = &bad } };
	struct outbox_item *list[2] = { &items[0], &items[1] };
	struct outbox_batch batch = { .items = list, .count = 2 };
	struct outbox_error err = OUTBOX_ERROR_INIT;

	bad.data = "{";
	bad.size = 1;
	CHECK(file->ops->publish(file, &batch, OUTBOX_NEVER, &err) == OUTBOX_OK);
	CHECK(items[0].verdict == OUTBOX_ACKED && items[1].verdict == OUTBOX_REJECTED);
}

static void check_publish(struct outbox_transport *file, const struct content *before, size_t kept)
{
	struct content after;
	const char *first, *second;

	publish(file, "one");
	publish(file, "two");
	after = read_file();
	CHECK(after.size > kept && memcmp(after.data, before->data, kept) == 0);
	first = memchr(after.data + kept, '\n', after.size - kept);
	CHECK(first);
	second = memchr(first + 1, '\n', after.size - (size_t)(first + 1 - after.data));
	CHECK(second && second + 1 == after.data + after.size);
	check_line(after.data + kept, (size_t)(first - after.data) - kept, "one");
	check_line(first + 1, (size_t)(second - first - 1), "two");
	free(after.data);
}

static void check_connect(const struct content *before)
{
	struct outbox_transport_config config = { .struct_size = sizeof(config),
						  .target = "t",
						  .clock = outbox_clock_system() };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_transport *file;
	ssize_t kept = model(before);
	struct content after;
	char url[160];
	int r;

	snprintf(url, sizeof(url), "file:%s?fsync=no", path);
	config.url = url;
	CHECK(file_transport_ops.open(&config, &file, &err) == OUTBOX_OK);
	r = file->ops->connect(file, OUTBOX_NEVER, &err);
	check_error(r, &err);
	CHECK(r == (kept < 0 ? OUTBOX_ECONFIG : OUTBOX_OK));
	after = read_file();
	CHECK(after.size == (kept < 0 ? before->size : (size_t)kept));
	CHECK(memcmp(after.data, before->data, after.size) == 0);
	free(after.data);
	if (kept >= 0)
		check_publish(file, before, (size_t)kept);
	transport_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	struct content content;

	if (!path[0])
		snprintf(path, sizeof(path), "%s/out.jsonl", fuzz_folder());
	content = make_content(&in);
	write_file(&content);
	check_connect(&content);
	free(content.data);
	return 0;
}
