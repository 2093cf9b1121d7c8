/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_SCHEMA_H
#define CONFIG_SCHEMA_H

/*
 * One set of tables says what a configuration can hold. Reading it, `outbox config show`, the JSON
 * Schema, the reference file, the names in the environment and those of --set are all made from them, so
 * that none of these can say something else than the program does.
 */

#include "config/node.h"
#include "config/problems.h"

#include <stdint.h>

struct buf;
struct schema;

enum schema_type {
	SCHEMA_NAME = 1,  /* const char *: a name of a source or target */
	SCHEMA_TEXT,      /* const char * */
	SCHEMA_URL,       /* const char *; shown without its password */
	SCHEMA_SECRET,    /* const char *, or file:PATH; never shown */
	SCHEMA_BOOL,      /* bool */
	SCHEMA_NUMBER,    /* int64_t within [min, max] */
	SCHEMA_FACTOR,    /* double within [min, max] */
	SCHEMA_SIZE,      /* int64_t bytes */
	SCHEMA_DURATION,  /* outbox_time above 0 */
	SCHEMA_KEEP,      /* outbox_time, or "forever" */
	SCHEMA_CHOICE,    /* int, one of choices */
	SCHEMA_RATE,      /* struct rate: 50/s, 3000/min or none */
	SCHEMA_START,     /* struct config_start: oldest, now or a time */
	SCHEMA_PRESET,    /* const struct outbox_policy * */
	SCHEMA_GLOBS,     /* struct config_texts: a list, or one */
	SCHEMA_DURATIONS, /* struct config_durations: a list, or one */
	SCHEMA_GROUP,     /* a struct with keys of its own */
	SCHEMA_LIST       /* struct config_list of structs that have a name */
};

/* When a change of a key takes effect. */
enum schema_reload {
	RELOAD_RELAY =
		0, /* as its group; sources, targets, relay: those concerned drain and start again */
	RELOAD_LIVE,   /* with a reload, at once */
	RELOAD_RESTART /* with the next start only; a reload says so */
};

#define RESTART_WORDS(key_) ((key_)->reload == RELOAD_RESTART ? "; a change needs a restart" : "")

struct schema_choice {
	const char *name; /* NULL: the end */
	int value;
};

struct schema_key {
	const char *name;
	enum schema_type type;
	size_t offset;
	const char *help;
	const char *fallback; /* the default, as one would write it; NULL: otherwise says it */
	const char *otherwise; /* where the value comes from when nobody set it and fallback is NULL */
	const char *example; /* for the reference file, where there is no fallback */
	bool required;
	bool exemplary; /* what the examples of its neighbours need: the reference writes it out */
	enum schema_reload reload;
	double min, max;
	const struct schema_choice *choices;
	const struct schema *group; /* of SCHEMA_GROUP and SCHEMA_LIST */
};

struct schema {
	const struct schema_key *keys;
	size_t count;
	size_t size;         /* of the struct */
	const void *initial; /* what it holds before anything is read; NULL: zeros */
	/* What no single key can see. map is NULL when nobody wrote the group. */
	void (*check)(const struct node *map, const void *value, struct problems *problems);
};

#define SCHEMA_LIST_MAX 64 /* sources, targets */

extern const struct schema schema_root;
extern const struct schema_choice schema_kinds[], schema_orders[];

const struct schema_key *schema_find(const struct schema *schema, const char *name);

/* ---- value.c ------------------------------------------------------------------------------- */

/* Parse a text into the key's type. EINVAL names the value (never a secret) and the remedy. */
int value_parse(const struct schema_key *key, const char *text, struct outbox_arena *arena,
		void *value, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The same for the types that are lists, GLOBS and DURATIONS: add one item. */
int value_add(const struct schema_key *key, const char *text, struct outbox_arena *arena,
	      void *value, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Is this type a list of texts? */
bool value_is_list(enum schema_type type);

/* As one would write it, secrets masked; nothing when the value is not set. */
void value_format(const struct schema_key *key, const void *value, struct buf *out);

/* What a value of this type looks like, for the reference: "a duration: 500ms, 5s, 7d". */
void value_describe(const struct schema_key *key, struct buf *out);

/* ---- read.c, override.c, expand.c ---------------------------------------------------------- */

/* Fill the struct of a schema from a map (NULL: all defaults). ENOMEM only; the rest are problems. */
int schema_read(const struct schema *schema, const struct node *map, struct outbox_arena *arena,
		struct problems *problems, void *value, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Replace ${VAR} and ${VAR:-default} in every text of the tree. */
int expand_tree(struct node *root, char *const *environment, struct outbox_arena *arena,
		struct problems *problems, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* OUTBOX_RELAY_BATCH and the like over the tree. */
int override_environment(struct node *root, char *const *environment, struct outbox_arena *arena,
			 struct problems *problems, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* "targets.events.batch=100" over the tree. */
int override_set(struct node *root, const char *assignment, struct outbox_arena *arena,
		 struct problems *problems, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The value of a variable in an environment, or NULL. */
const char *environment_find(char *const *environment, const char *name, size_t length);

#endif
