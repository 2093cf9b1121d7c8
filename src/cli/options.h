/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

/*
 * One parser for every command. A command describes its options in a table of fields (fields/fields.h); the parser
 * writes each value, already typed, into the command's own struct at the given offset, so the same table also prints
 * --help and nothing is described twice.
 */

#include "fields/fields.h"

#include <outbox/clock.h>

#define LIST_MAX 64

struct list {
	const char *items[LIST_MAX];
	size_t count;
};

/* A table of options and the struct that they fill. */
struct option_set {
	const struct field *options;
	size_t count;
	void *values;
};

struct parsed {
	const char *words[LIST_MAX * 16]; /* what is not an option, in order */
	size_t n_words;
	bool help; /* --help or -h was among them: nothing else is checked */
};

/*
 * Parse argv[first...]. Options and words may be mixed; "--" ends the options. EINVAL names the option,
 * the value and the remedy. now is what "+5m" and "7d" are counted from.
 */
int options_parse(int argc, char **argv, int first, const struct option_set sets[2], outbox_time now,
		  struct parsed *ret_parsed, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* "name=value" into its halves; name is copied. EINVAL says what the option wants. */
int pair_split(const char *option, const char *text, char *ret_name, size_t size,
	       const char **ret_value, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
