/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_NODE_H
#define CONFIG_NODE_H

/*
 * A configuration as people wrote it: maps, lists and texts, each with the place it came from. What a
 * text means is the schema's business. All of it lives in one arena.
 */

#include <outbox/arena.h>
#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct problems;

enum origin { ORIGIN_DEFAULT = 0, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_SET, ORIGIN_OPTION };

struct place {
	enum origin origin;
	const char *name;    /* file, variable, what --set names, option; NULL: nobody wrote it */
	size_t line, column; /* of a file, from 1 on */
};

enum node_kind { NODE_TEXT = 1, NODE_MAP, NODE_LIST };

struct node {
	enum node_kind kind;
	struct place place;
	const char *key; /* in a map */
	struct place key_place;
	const char *text; /* of NODE_TEXT */
	bool nothing;     /* NODE_TEXT: "key:" or "key: null" */
	bool broken;      /* NODE_TEXT: a problem was told already, nobody knows the value */
	size_t index;     /* in a list */
	struct node *parent, *first, *last, *next;
};

#define YAML_SIZE_MAX ((size_t)1 << 20)
#define YAML_DEPTH_MAX 16
#define YAML_NODES_MAX 5000

/* Read YAML. Mistakes go to problems; *ret_root is NULL then, or when the text holds nothing. */
int yaml_read(const char *file, const char *text, size_t size, struct outbox_arena *arena,
	      struct problems *problems, struct node **ret_root,
	      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A new child at the parent's end. NULL: out of memory. key is borrowed. */
struct node *node_add(struct outbox_arena *arena, struct node *parent, enum node_kind kind,
		      const char *key);

/* The child of this key; NULL: none, or not a map. map may be NULL. */
struct node *node_find(const struct node *map, const char *key);

/* The text of a list item's "name", or NULL. */
const char *node_name(const struct node *item);

/* The item of a list (NULL: an empty one) with this "name", or NULL. */
struct node *node_named(const struct node *list, const char *name);

/* For people: targets[1] "partner", match.kind */
void node_path(const struct node *node, struct buf *out);

/* outbox.yaml:16:15, OUTBOX_RELAY_BATCH, --set relay.batch, default */
void place_format(const struct place *place, struct buf *out);

#endif
