/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FIELDS_FIELDS_H
#define FIELDS_FIELDS_H

/*
 * One description of a record's fields: a table, from which JSON goes out (an answer, a line of --json) and comes in (a
 * query, the body of a POST), command-line options are parsed, and --help, JSON Schema and /api/openapi.json are made.
 * So none of these can differ from the others.
 */

#include <outbox/error.h>
#include <outbox/message.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outbox_arena;

enum field_type {
	FIELD_TEXT = 1,    /* const char *; NULL: null, or not given */
	FIELD_CHARS,       /* char[] in the struct itself; out only */
	FIELD_BOOL,        /* bool; an option of this type takes no value */
	FIELD_INT,         /* int within [min, max] */
	FIELD_NUMBER,      /* int64_t within [min, max] */
	FIELD_COUNT,       /* size_t within [min, max] */
	FIELD_SEQ,         /* int64_t as a string: it does not fit a double; out only */
	FIELD_THOUSANDTHS, /* int64_t, thousandths, as a number; out only */
	FIELD_BYTES,       /* int64_t above 0: 65536, 64KiB, 8MiB */
	FIELD_TIME,        /* outbox_time, RFC 3339; 0: null. In: +5m from now, too */
	FIELD_AGO,         /* outbox_time in the past: an age like 7d, or a time; in only */
	FIELD_DURATION,    /* outbox_time above 0: 500ms, 1m30s */
	FIELD_KEEP,        /* outbox_time: a duration, or "forever" (OUTBOX_NEVER) */
	FIELD_SECONDS, /* outbox_time, a duration, as a number; 0 with FIELD_NULL: null; out only */
	FIELD_PER_SECOND, /* double a second: 100/s, 3000/min; an option */
	FIELD_REPEATED,   /* struct list: an option that may be given again and again */
	FIELD_LIST,   /* made, of objects of the record `of`; in: of texts, struct field_texts */
	FIELD_OBJECT, /* made, of the record `of`; out only */
	FIELD_MAP     /* made, names to texts; in: struct field_map */
};

#define FIELD_NULL 1u     /* out: may be null */
#define FIELD_ABSENT 2u   /* out: may be missing: make() gave NULL */
#define FIELD_REQUIRED 4u /* in: must be given */
#define FIELD_UNTRUSTED \
	8u /* out: what a server or a library said, which may have quoted a secret */

struct field {
	const char *name;
	enum field_type type;
	size_t offset; /* of the value in its struct */
	unsigned flags;
	const char *help;         /* for descriptions; NULL: the name says it */
	const char *const *words; /* a text is one of these, NULL behind the last; NULL: any */
	int64_t min, max;         /* in: of a number or a list, when max is not 0 */
	json_t *(*make)(const void *row); /* out: a new reference, instead of what is at offset */
	const struct record *of;
	const char *argument; /* of an option: "NAME=URL" */
};

struct record {
	const char *name; /* in the description: "Delivery" */
	const struct field *fields;
	size_t count;
	const struct record *base; /* its fields go first; its row is the beginning of this one's. NULL: none */
};

struct field_texts {
	const char **items;
	size_t count;
};

struct field_map {
	struct outbox_header *items;
	size_t count;
	bool given;
};

/* A field whose member has its name, and one that has another. */
#define FIELD(type_, member_, kind_, flags_, help_) \
	FIELD_NAMED(#member_, type_, member_, kind_, flags_, help_)
#define FIELD_NAMED(name_, type_, member_, kind_, flags_, help_)                      \
	{                                                                             \
		.name = (name_), .type = (kind_), .offset = offsetof(type_, member_), \
		.flags = (flags_), .help = (help_)                                    \
	}
/* in: how many at most, 1 to max */
#define FIELD_LIMIT(type_, max_, help_)                                                           \
	{                                                                                         \
		.name = "limit", .type = FIELD_COUNT, .offset = offsetof(type_, limit), .min = 1, \
		.max = (max_), .help = (help_)                                                    \
	}

#define RECORD(name_, fields_)                                                     \
	{                                                                          \
		.name = (name_), .fields = (fields_), .count = ARRAY_SIZE(fields_) \
	}

/* A row as an object. NULL: out of memory. */
json_t *fields_json(const struct record *record, const void *row);
/* An array of them, size bytes apart. */
json_t *fields_list(const struct record *record, const void *rows, size_t count, size_t size);

/*
 * Read what a caller gave into values, which is zeroed where nothing was given. Names that the record does not know are refused.
 * EINVAL names the field, the value and the remedy. Texts come from the arena.
 */
int fields_read(const struct record *record, const json_t *object, struct outbox_arena *arena,
		void *values, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The same for one field that came as a text, in a query. */
int fields_read_text(const struct field *field, const char *text, struct outbox_arena *arena,
		     void *values, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* OK when the record (NULL: an empty one) knows the name, else EINVAL: there is no `what` of this name, these there are. */
int fields_check_name(const struct record *record, const char *what, const char *name,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* JSON Schema (2020-12); other records as references to #/components/schemas/NAME. NULL: out of memory. */
json_t *fields_schema(const struct record *record, bool in);
/* Of one field alone: a parameter. */
json_t *field_schema(const struct field *field, bool in);

#endif
