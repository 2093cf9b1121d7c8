/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FIELDS_FIELDS_H
#define FIELDS_FIELDS_H

/*
 * One description of a record's fields: a table, from which outbox.yaml is read and shown, command-line options are
 * parsed, JSON goes out (an answer, a line of --json) and comes in (a query, the body of a POST), and --help, the
 * reference file, JSON Schema and /api/openapi.json are made. So none of these can differ from the others.
 */

#include <outbox/arena.h>
#include <outbox/error.h>
#include <outbox/relay.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct node;
struct problems;
struct record;

enum field_type {
	FIELD_TEXT = 1,    /* const char *; NULL: null, or not given */
	FIELD_CHARS,       /* char[] in the struct itself; out only */
	FIELD_NAME,        /* const char *: a name of a source or target */
	FIELD_URL,         /* const char *; shown without its password */
	FIELD_SECRET,      /* const char *, or file:PATH; never shown */
	FIELD_WORD,        /* int that stands for one of words */
	FIELD_POLICY,      /* const struct outbox_policy *: a preset, by its name */
	FIELD_BOOL,        /* bool; an option of this type takes no value */
	FIELD_INT,         /* int within [min, max] */
	FIELD_NUMBER,      /* int64_t within [min, max] */
	FIELD_COUNT,       /* size_t within [min, max] */
	FIELD_FACTOR,      /* double within [min, max]; in only */
	FIELD_SEQ,         /* int64_t as a string: it does not fit a double; out only */
	FIELD_THOUSANDTHS, /* int64_t, thousandths, as a number; out only */
	FIELD_BYTES,       /* int64_t above 0: 65536, 64KiB, 8MiB */
	FIELD_TIME,        /* outbox_time, RFC 3339; 0: null. In: +5m from now, too */
	FIELD_AGO,         /* outbox_time in the past: an age like 7d, or a time; in only */
	FIELD_START,       /* struct field_start: oldest, now or a time */
	FIELD_DURATION,    /* outbox_time above 0: 500ms, 1m30s */
	FIELD_KEEP,        /* outbox_time: a duration, or "forever" (OUTBOX_NEVER) */
	FIELD_SECONDS, /* outbox_time, a duration, as a number; 0 with FIELD_NULL: null; out only */
	FIELD_RATE,    /* struct rate: 50/s, 3000/min or none */
	FIELD_PER_SECOND, /* double a second: 100/s, 3000/min */
	FIELD_TEXTS,      /* struct field_texts: a list of min to max texts */
	FIELD_GLOBS,      /* struct field_texts: a list, or one */
	FIELD_DURATIONS,  /* struct field_durations: a list, or one */
	FIELD_REPEATED,   /* struct list: an option that may be given again and again */
	FIELD_MAP,        /* names to texts: struct field_map; out: made */
	FIELD_OBJECT,     /* the struct of the record `of`; out: made */
	FIELD_LIST,       /* struct field_list of records `of`; out: made */
	FIELD_TYPES       /* how many there are */
};

#define FIELD_REQUIRED 1u /* in: must be given */
#define FIELD_NULL 2u     /* out: may be null */
#define FIELD_ABSENT 4u   /* out: may be missing: make() gave NULL */
#define FIELD_HIDDEN \
	16u /* an option that is still taken, and has no use any more: help leaves it out */
#define FIELD_UNTRUSTED \
	8u /* out: what a server or a library said, which may have quoted a secret */
/* When a change of the configuration takes effect; neither: as its group, else those concerned drain and start again */
#define FIELD_LIVE 32u    /* with a reload, at once */
#define FIELD_RESTART 64u /* with the next start only; a reload says so */

/* For descriptions. */
#define FIELD_RESTART_WORDS(field_) \
	((field_)->flags & FIELD_RESTART ? "; a change needs a restart" : "")

struct field {
	const char *name;
	enum field_type type;
	unsigned flags;
	size_t offset;    /* of the value in its struct */
	const char *help; /* for descriptions; NULL: the name says it */
	/* of FIELD_WORD, indexed by the value: NULL in front, where 0 is "not set", and behind the last. A text is one of them, where they are given */
	const char *const *words;
	int64_t min, max;        /* in: of a number, a duration or a list, when max is not 0 */
	const struct record *of; /* of FIELD_OBJECT and FIELD_LIST */
	json_t *(*make)(const void *row); /* out: a new reference, instead of what is at offset */
	const char *argument;             /* of an option: "NAME=URL" */
	/* of the configuration */
	const char *fallback; /* the default, as one would write it; NULL: otherwise says it */
	const char *otherwise; /* where the value comes from when nobody set it and fallback is NULL */
	const char *example; /* for the reference file, where there is no fallback */
};

struct record {
	const char *name; /* in the description: "Delivery" */
	const struct field *fields;
	size_t count;
	const struct record *base; /* its fields go first; its row is the beginning of this one's. NULL: none */
	/* of the configuration */
	size_t size;         /* of the struct */
	const void *initial; /* what it holds before anything is read; NULL: zeros */
	/* What no single field can see. map is NULL when nobody wrote the group. */
	void (*check)(const struct node *map, const void *value, struct problems *problems);
};

struct field_texts {
	const char **items;
	size_t count;
};

struct field_durations {
	outbox_time items[OUTBOX_SCHEDULE_MAX];
	size_t count;
};

struct field_start {
	int where; /* enum outbox_start */
	outbox_time time;
};

struct field_map {
	struct outbox_header *items;
	size_t count;
	bool given;
};

struct field_list {
	void *items;
	size_t count;
};

#define FIELD_LIST_MAX 64 /* of records, of globs */

/* A field whose member has its name, and one that has another. */
#define FIELD(type_, member_, kind_, flags_, help_) \
	FIELD_NAMED(#member_, type_, member_, kind_, flags_, help_)
#define FIELD_NAMED(name_, type_, member_, kind_, flags_, help_)                      \
	{                                                                             \
		.name = (name_), .type = (kind_), .offset = offsetof(type_, member_), \
		.flags = (flags_), .help = (help_)                                    \
	}
/* One of some words: an int that stands for it. */
#define FIELD_ONE_OF(type_, member_, words_, flags_, help_)                               \
	{                                                                                 \
		.name = #member_, .type = FIELD_WORD, .offset = offsetof(type_, member_), \
		.words = (words_), .flags = (flags_), .help = (help_)                     \
	}
/* One that is made of the whole row, and one of another record. */
#define FIELD_MADE(name_, type_, flags_, make_, help_)                                \
	{                                                                             \
		.name = (name_), .type = (type_), .flags = (flags_), .make = (make_), \
		.help = (help_)                                                       \
	}
#define FIELD_MADE_OF(name_, type_, record_, make_, help_)                           \
	{                                                                            \
		.name = (name_), .type = (type_), .of = &(record_), .make = (make_), \
		.help = (help_)                                                      \
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

/* NULL: the record (NULL: an empty one) has no field of this name. */
const struct field *fields_find(const struct record *record, const char *name);
/* The name that a mistyped one most likely stands for, or NULL. */
const char *fields_nearest(const struct record *record, const char *name);

/* ---- value.c, format.c: texts -------------------------------------------------------------- */

struct field_context {
	struct outbox_arena *arena; /* owns texts; NULL: they are borrowed */
	outbox_time now;            /* what +5m and 7d are counted from */
};

/* Parse a text into the field's type. EINVAL names the value (never a secret) and the remedy, not the field. */
int field_parse(const struct field *field, const char *text, const struct field_context *context,
		void *value, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The same for the types that are lists of texts: add one item. */
int field_add(const struct field *field, const char *text, const struct field_context *context,
	      void *value, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* EINVAL as field_parse() gives it. */
int field_reject(const struct field *field, const char *text, struct outbox_error *err);

/* Is this type a list of texts? */
bool field_is_list(enum field_type type);

/* As one would write it, secrets masked; nothing when the value is not set. */
void field_format(const struct field *field, const void *value, struct buf *out);

/* What a value of this type looks like, for the reference: "a duration: 500ms, 5s, 7d". */
void field_describe(const struct field *field, struct buf *out);

/* The i-th word that a field can be; NULL: behind the last, or any text. */
const char *field_word_at(const struct field *field, size_t i);
const char *field_word_name(const char *const *words, int value);

/* ---- fields.c, read.c: JSON ---------------------------------------------------------------- */

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

/* ---- schema.c: JSON Schema (2020-12) -------------------------------------------------------- */

enum fields_use {
	FIELDS_OUT = 1, /* an answer; other records as references to #/components/schemas/NAME */
	FIELDS_IN,      /* a body, a query */
	FIELDS_FILE /* the configuration: variables may stand for values; other records inside */
};

/* NULL: out of memory. */
json_t *fields_schema(const struct record *record, enum fields_use use);
/* Of one field alone: a parameter. */
json_t *field_schema(const struct field *field, enum fields_use use);

#endif
