/* SPDX-License-Identifier: Apache-2.0 */

/* Globs beside a table that tries everything. Texts that are not UTF-8 have no defined answer. */

#include "base/text.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#define PART_MAX 200

/* matches[k]: does the glob so far match the first k bytes of the text? */
static bool reference(const char *glob, const char *text)
{
	bool now[PART_MAX + 1] = { true }, next[PART_MAX + 1];
	const uint8_t *s = (const uint8_t *)text;
	size_t size = strlen(text);

	for (; *glob; glob++) {
		memset(next, 0, sizeof(next));
		for (size_t k = 0; k <= size; k++) {
			size_t n = k < size ? reference_utf8(s + k, size - k) : 0;

			if (!now[k])
				continue;
			if (*glob == '*') {
				next[k] = true;
				if (n)
					now[k + n] = true;
			} else if (*glob == '?') {
				if (n)
					next[k + n] = true;
			} else if (k < size && *glob == text[k]) {
				next[k + 1] = true;
			}
		}
		memcpy(now, next, sizeof(now));
	}
	return now[size];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	const char *glob = input_text(&in), *text = input_text(&in);
	size_t n_glob = strlen(glob), n_text = strlen(text);
	bool match;

	if (n_glob <= PART_MAX && n_text <= PART_MAX) {
		match = glob_match(glob, text);
		if (reference_utf8_valid(glob, n_glob) && reference_utf8_valid(text, n_text))
			CHECK(match == reference(glob, text));
		CHECK(glob_match("*", text));
		CHECK(strpbrk(glob, "*?") || match == (strcmp(glob, text) == 0));
		CHECK(strpbrk(text, "*?") || glob_match(text, text));
	}
	input_end(&in);
	return 0;
}
