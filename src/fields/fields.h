/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FIELDS_FIELDS_H
#define FIELDS_FIELDS_H

/*
 * The shape of a JSON object that goes out (an answer, a line of --json) or comes in (a query, the body of a POST):
 * one table a shape, from which the object is written or read, and its description in /api/openapi.json is made. So
 * the three cannot differ.
 */

#include <outbox/error.h>
#include <outbox/message.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outbox_arena;

enum field_kind {
	FIELD_TEXT = 1, /* const char *; NULL: null, or not given */
	FIELD_CHARS,    /* char[] in the struct itself; out only */
	FIELD_SEQ,      /* int64_t as a string: it does not fit a double; out only */
	FIELD_TIME,     /* outbox_time, RFC 3339; 0: null. In: +5m from now, too */
	FIELD_AGO,      /* outbox_time in the past: an age like 7d, or a time; in only */
	FIELD_INT,      /* int */
	FIELD_COUNT,    /* int64_t */
	FIELD_SIZE,     /* size_t */
	FIELD_BOOL,     /* bool */
	FIELD_SECONDS, /* outbox_time, a duration, as a number; 0 where null is allowed: null; out only */
	FIELD_NUMBER, /* int64_t, thousandths, as a number; out only */
	FIELD_LIST,   /* made, of objects of the shape `of`; in: of texts, struct field_texts */
	FIELD_OBJECT, /* made, of the shape `of`; out only */
	FIELD_MAP     /* made, names to texts; in: struct field_map */
};

#define FIELD_NULL 1u     /* out: may be null */
#define FIELD_ABSENT 2u   /* out: may be missing: make() gave NULL */
#define FIELD_REQUIRED 4u /* in: must be given */
#define FIELD_SAID 8u     /* out: what a server or a library said, which may have quoted a secret */

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
	unsigned flags;
	const char *help;          /* for the description; NULL: the name says it */
	const char *const *values; /* a text is one of these, NULL behind the last; NULL: any */
	int64_t min, max;          /* in: of a number or a list, when max is not 0 */
	json_t *(*make)(const void *row); /* out: a new reference, instead of what is at offset */
	const struct shape *of;
};

struct shape {
	const char *name; /* in the description: "Delivery" */
	const struct field *fields;
	size_t count;
	const struct shape *base; /* its fields go first; its row is the beginning of this one's. NULL: none */
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
		.name = (name_), .kind = (kind_), .offset = offsetof(type_, member_), \
		.flags = (flags_), .help = (help_)                                    \
	}
/* in: how many at most, 1 to max */
#define FIELD_LIMIT(type_, max_, help_)                                                          \
	{                                                                                        \
		.name = "limit", .kind = FIELD_SIZE, .offset = offsetof(type_, limit), .min = 1, \
		.max = (max_), .help = (help_)                                                   \
	}

#define SHAPE(name_, fields_)                                                      \
	{                                                                          \
		.name = (name_), .fields = (fields_), .count = ARRAY_SIZE(fields_) \
	}

/* A row as an object. NULL: out of memory. */
json_t *shape_json(const struct shape *shape, const void *row);
/* An array of them, size bytes apart. */
json_t *shape_list(const struct shape *shape, const void *rows, size_t count, size_t size);

/*
 * Read what a caller gave into values, which is zeroed where nothing was given. Names that the shape does not know are refused.
 * EINVAL names the field, the value and the remedy. Texts come from the arena.
 */
int shape_read(const struct shape *shape, const json_t *object, struct outbox_arena *arena,
	       void *values, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The same for one field that came as a text, in a query. */
int shape_read_text(const struct field *field, const char *text, struct outbox_arena *arena,
		    void *values, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* OK when the shape (NULL: an empty one) knows the name, else EINVAL: there is no `what` of this name, these there are. */
int shape_unknown(const struct shape *shape, const char *what, const char *name,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* JSON Schema (2020-12); other shapes as references to #/components/schemas/NAME. NULL: out of memory. */
json_t *shape_schema(const struct shape *shape, bool in);
/* Of one field alone: a parameter. */
json_t *field_schema(const struct field *field, bool in);

#endif
