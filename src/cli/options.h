/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

/*
 * One parser for every command. A command describes its options in a static table; the parser writes
 * each value, already typed, into the command's own struct at the given offset, so the same table also
 * prints --help and nothing is described twice.
 */

#include <outbox/clock.h>
#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIST_MAX 64

enum option_kind {
	OPTION_FLAG = 1, /* bool */
	OPTION_TEXT,     /* const char * */
	OPTION_LIST,     /* struct list: may be given again and again */
	OPTION_NUMBER,   /* int64_t within [min, max] */
	OPTION_SIZE,     /* int64_t bytes: 65536, 64KiB, 8MiB */
	OPTION_RATE,     /* double a second: 100/s, 3000/min */
	OPTION_DURATION, /* outbox_time, above 0 */
	OPTION_KEEP,     /* outbox_time: a duration, or "forever" (OUTBOX_NEVER) */
	OPTION_TIME,     /* outbox_time: +5m or RFC 3339 */
	OPTION_AGO       /* outbox_time: 7d (before now) or RFC 3339 */
};

struct list {
	const char *items[LIST_MAX];
	size_t count;
};

struct option {
	const char *name; /* without the dashes */
	enum option_kind kind;
	size_t offset;        /* of the value in the command's struct */
	const char *argument; /* "NAME=URL"; NULL for flags */
	const char *help;
	int64_t min, max; /* OPTION_NUMBER */
	bool required;
};

/* A table of options and the struct that they fill. */
struct option_set {
	const struct option *options;
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
