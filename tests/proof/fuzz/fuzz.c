/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void fuzz_broken(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
	abort();
}

/* ---- input --------------------------------------------------------------------------------- */

uint8_t input_byte(struct input *in)
{
	if (in->size == 0)
		return 0;
	in->size--;
	return *in->data++;
}

int64_t input_number(struct input *in)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < 8; i++)
		number |= (uint64_t)input_byte(in) << (8 * i);
	return (int64_t)number;
}

static const char *keep(struct input *in, size_t size)
{
	char *text = malloc(size + 1);

	CHECK(text && in->n_texts < sizeof(in->texts) / sizeof(in->texts[0]));
	if (size)
		memcpy(text, in->data, size);
	text[size] = '\0';
	in->data += size;
	in->size -= size;
	in->texts[in->n_texts++] = text;
	return text;
}

const char *input_text(struct input *in)
{
	const uint8_t *end = in->size ? memchr(in->data, 0, in->size) : NULL;
	const char *text = keep(in, end ? (size_t)(end - in->data) : in->size);

	input_byte(in);
	return text;
}

const char *input_text_if(struct input *in, unsigned mask, unsigned n)
{
	return mask >> n & 1 ? input_text(in) : NULL;
}

const char *input_rest(struct input *in)
{
	return keep(in, in->size);
}

void input_end(struct input *in)
{
	while (in->n_texts)
		free(in->texts[--in->n_texts]);
}

/* ---- references ---------------------------------------------------------------------------- */

size_t reference_utf8(const uint8_t *s, size_t size)
{
	static const struct {
		uint8_t first_low, first_high, second_low, second_high;
		size_t bytes;
	} rows[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	if (size == 0 || s[0] < 0x80)
		return size ? 1 : 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (s[0] < rows[i].first_low || s[0] > rows[i].first_high)
			continue;
		if (size < rows[i].bytes || s[1] < rows[i].second_low || s[1] > rows[i].second_high)
			return 0;
		for (size_t k = 2; k < rows[i].bytes; k++) {
			if (s[k] < 0x80 || s[k] > 0xbf)
				return 0;
		}
		return rows[i].bytes;
	}
	return 0;
}

bool reference_utf8_valid(const char *text, size_t size)
{
	const uint8_t *s = (const uint8_t *)text;

	while (size > 0) {
		size_t n = reference_utf8(s, size);

		if (n == 0)
			return false;
		s += n;
		size -= n;
	}
	return true;
}

/* U+2028 to U+202E and U+2066 to U+2069: breaks of a line, and what turns the writing direction. */
static bool is_turning(const uint8_t *s)
{
	if (s[0] != 0xe2)
		return false;
	return (s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
	       (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

bool is_printable(const char *text, size_t size)
{
	const uint8_t *s = (const uint8_t *)text;

	if (!reference_utf8_valid(text, size))
		return false;
	for (size_t i = 0; i < size; i++) {
		if (s[i] < 0x20 || s[i] == 0x7f)
			return false;
		if (i + 1 < size && s[i] == 0xc2 && s[i + 1] < 0xa0)
			return false; /* C1 */
		if (i + 2 < size && is_turning(s + i))
			return false;
	}
	return true;
}

void check_error(int status, const struct outbox_error *err)
{
	size_t length = strlen(err->message);

	CHECK(err->status == status);
	CHECK(length < sizeof(err->message));
	if (status == OUTBOX_OK) {
		CHECK(length == 0);
		return;
	}
	CHECK(status > 0 && status < OUTBOX_EINTERNAL);
	CHECK(length > 0);
	CHECK(is_printable(err->message, length));
}

/* ---- files --------------------------------------------------------------------------------- */

static char folder[64];

static void remove_folder(void)
{
	char path[sizeof(folder) + 256 + 2];
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] != '.')
			unlink(path);
	}
	if (dir)
		closedir(dir);
	rmdir(folder);
}

const char *fuzz_folder(void)
{
	if (folder[0])
		return folder;
	snprintf(folder, sizeof(folder), "%s/outbox-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	CHECK(mkdtemp(folder));
	CHECK(atexit(remove_folder) == 0);
	return folder;
}
