/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_H
#define FUZZ_H

/*
 * What the harnesses share. A harness is one file with LLVMFuzzerTestOneInput(): it makes arguments of
 * the bytes, calls the code and checks what must hold, with CHECK(), which aborts. libFuzzer or
 * replay.c has the main().
 */

#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                             \
	do {                                                         \
		if (!(condition))                                    \
			fuzz_broken(#condition, __FILE__, __LINE__); \
	} while (0)
_Noreturn void fuzz_broken(const char *condition, const char *file, int line);

/* The bytes of an input, taken from the front. When they are used up: zeros and empty texts. */
struct input {
	const uint8_t *data;
	size_t size;
	char *texts[256]; /* what input_text() made, for input_end() */
	size_t n_texts;
};

uint8_t input_byte(struct input *in);
/* Eight bytes, the lowest first. */
int64_t input_number(struct input *in);
/* Up to the next NUL, in memory of just its size. Lives until input_end(). */
const char *input_text(struct input *in);
/* The same, or NULL when bit n of mask is not set. */
const char *input_text_if(struct input *in, unsigned mask, unsigned n);
/* All that is left, with a NUL behind it. */
const char *input_rest(struct input *in);
void input_end(struct input *in);

/* A failure has its status and one clean line that says something; a success has written nothing. */
void check_error(int status, const struct outbox_error *err);

/* One character at s by the table of the Unicode standard (3-7), not by our code. 0: not UTF-8. */
size_t reference_utf8(const uint8_t *s, size_t size);
bool reference_utf8_valid(const char *text, size_t size);
/* No control characters, nothing that turns the writing direction, all of it UTF-8. */
bool is_printable(const char *text, size_t size);

/* A new folder for files, in memory where the system has one; removed at exit with the files in it. */
const char *fuzz_folder(void);

#endif
