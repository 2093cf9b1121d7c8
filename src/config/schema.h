/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_SCHEMA_H
#define CONFIG_SCHEMA_H

/*
 * Tables of fields (fields/fields.h) say what a configuration can hold. Reading it, `outbox config show`, the JSON
 * Schema, the reference file, the names in the environment and those of --set are all made from them, so that none of
 * these can say something else than the program does.
 */

#include "base/cleanup.h"
#include "config/node.h"
#include "config/problems.h"
#include "fields/fields.h"

/* How a table's lines are written. */
#define KEY(type_, struct_, field_) \
	.name = #field_, .type = FIELD_##type_, .offset = offsetof(struct struct_, field_)
#define SCHEMA(keys_, struct_) \
	.fields = keys_, .count = ARRAY_SIZE(keys_), .size = sizeof(struct struct_)

extern const struct record schema_root, schema_health, schema_alert, schema_otlp;

/* ---- read.c, walk.c, override.c, expand.c ---------------------------------------------------------- */

/* Fill the struct of a schema from a map (NULL: all defaults). ENOMEM only; the rest are problems. */
int schema_read(const struct record *schema, const struct node *map, struct outbox_arena *arena,
		struct problems *problems, void *value, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A key that holds one value, wherever it is. */
struct leaf {
	const struct field *key;
	const char *path;        /* as --set takes it: targets.events.batch */
	const struct node *node; /* where it was written; NULL: nowhere */
	const void *value;
	unsigned reload; /* FIELD_LIVE, FIELD_RESTART or neither: its own or its group's */
};

#define KEY_PATH_MAX 400

/*
 * Every leaf of a record whose values are at value (may be NULL) and were written in map. Entries of lists are found by map
 * and by their names: without it there are none.
 */
void schema_walk(const struct record *schema, const struct node *map, const void *value,
		 void (*visit)(void *context, const struct leaf *leaf), void *context);

/* Replace ${VAR} and ${VAR:-default} in every text of the tree. */
int expand_tree(struct node *root, char *const *environment, struct outbox_arena *arena,
		struct problems *problems, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* OUTBOX_RELAY_BATCH and the like over the tree. */
int override_environment(struct node *root, char *const *environment, struct outbox_arena *arena,
			 struct problems *problems, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* "targets.events.batch=100" over the tree. */
int override_set(struct node *root, const char *assignment, struct outbox_arena *arena,
		 struct problems *problems, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
