/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies over the file: variables, then --set. Both name a key by its path, targets.events.batch or
 * OUTBOX_TARGETS_EVENTS_BATCH, and put a node into the tree that remembers where it came from; the
 * tables then check it like any other. Entries of lists are named by their name and must be there.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/text.h"
#include "config/schema.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "OUTBOX"

struct override {
	struct outbox_arena *arena;
	struct problems *problems;
	struct place place;
};

/* ---- putting one value into the tree -------------------------------------------------------- */

static struct node *child_make(const struct override *o, struct node *map, enum node_kind kind,
			       const char *key)
{
	struct node *node = node_find(map, key);

	/* "relay:" with nothing behind it is a group without keys */
	if (node && node->nothing && kind == NODE_MAP) {
		node->kind = NODE_MAP;
		node->nothing = false;
	}
	if (node || map->kind != NODE_MAP)
		return node;
	node = node_add(o->arena, map, kind, key);
	if (node)
		node->place = node->key_place = o->place;
	return node;
}

static struct node *put_text(const struct override *o, struct node *list, const char *text,
			     size_t size)
{
	struct node *node = node_add(o->arena, list, NODE_TEXT, NULL);

	if (!node)
		return NULL;
	node->place = o->place;
	node->text = outbox_arena_copy(o->arena, text, size);
	return node->text ? node : NULL;
}

/* Lists are written with commas. */
static bool put_value(const struct override *o, const struct field *key, struct node *node,
		      const char *value)
{
	node->place = o->place;
	node->nothing = node->broken = false;
	node->first = node->last = NULL;
	node->kind = field_is_list(key->type) ? NODE_LIST : NODE_TEXT;
	node->text = outbox_arena_text(o->arena, value);
	if (!node->text || node->kind == NODE_TEXT)
		return node->text != NULL;
	while (true) {
		size_t size = strcspn(value, ",");

		if (!put_text(o, node, value, size))
			return false;
		if (!value[size])
			return true;
		value += size + 1;
	}
}

static void unknown_key(const struct override *o, const struct record *schema, const char *word)
{
	const char *nearest = fields_nearest(schema, word);
	char shown[80];

	text_shown(shown, sizeof(shown), word);
	if (nearest)
		problems_add(o->problems, &o->place, "there is no key \"%s\"; did you mean %s?",
			     shown, nearest);
	else
		problems_add(o->problems, &o->place,
			     "there is no key \"%s\"; outbox config reference lists them", shown);
}

/* The entry of this name; NULL after a problem. */
static struct node *find_item(const struct override *o, const struct node *list, const char *key,
			      const char *name)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(300);
	struct node *found = node_named(list, name);
	char shown[80];

	if (found)
		return found;
	for (struct node *item = list ? list->first : NULL; item; item = item->next)
		if (node_name(item))
			buf_printf(&names, "%s%s", names.size ? ", " : "",
				   text_shown(shown, sizeof(shown), node_name(item)));
	text_shown(shown, sizeof(shown), name);
	problems_add(o->problems, &o->place, "nothing in %s is named \"%s\"; there %s %s", key,
		     shown, names.size ? "are" : "is", names.size ? buf_str(&names) : "nothing");
	return NULL;
}

enum step { STEP_ON = 1, STEP_DONE, STEP_NO_VALUE, STEP_NO_MEMORY };

/* One word of the path: from *at and *schema to what it names. The rest of the path may be used, too. */
static enum step step(const struct override *o, const struct field *key, struct node **at,
		      char **path, const char *value)
{
	if (key->type == FIELD_LIST) {
		if (!*path)
			return STEP_NO_VALUE;
		*at = find_item(o, node_find(*at, key->name), key->name, strsep(path, "."));
		return !*at ? STEP_DONE : *path ? STEP_ON : STEP_NO_VALUE;
	}
	if (key->type == FIELD_OBJECT) {
		if (!*path)
			return STEP_NO_VALUE;
		*at = child_make(o, *at, NODE_MAP, key->name);
		return *at ? STEP_ON : STEP_NO_MEMORY;
	}
	*at = child_make(o, *at, NODE_TEXT, key->name);
	return *at && put_value(o, key, *at, value) ? STEP_DONE : STEP_NO_MEMORY;
}

static bool is_leaf(const struct field *key)
{
	return key->type != FIELD_OBJECT && key->type != FIELD_LIST;
}

/* path is cut to pieces. False: out of memory. */
static bool put(const struct override *o, struct node *root, char *path, const char *value)
{
	const struct record *schema = &schema_root;
	struct node *at = root;
	char *word;

	while ((word = strsep(&path, "."))) {
		const struct field *key = fields_find(schema, word);
		enum step next;

		/* where the file has something else than keys is told later */
		if (at->kind != NODE_MAP)
			return true;
		if (!key || (is_leaf(key) && path)) {
			unknown_key(o, schema, key ? path : word);
			return true;
		}
		next = step(o, key, &at, &path, value);
		if (next == STEP_NO_VALUE)
			break;
		if (next != STEP_ON)
			return next == STEP_DONE;
		schema = key->of;
	}
	problems_add(o->problems, &o->place, "is a group of keys, not a value; name a key in it");
	return true;
}

int override_set(struct node *root, const char *assignment, struct outbox_arena *arena,
		 struct problems *problems, struct outbox_error *err)
{
	const char *equals = strchr(assignment, '=');
	struct override o = { .arena = arena, .problems = problems };
	char path[KEY_PATH_MAX], shown[80];
	size_t length = equals ? (size_t)(equals - assignment) : 0;

	o.place = (struct place){ .origin = ORIGIN_SET, .name = "" };
	if (length == 0 || length >= sizeof(path) || text_has_control(assignment, strlen(assignment)))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--set: \"%s\" is not KEY=VALUE; write --set relay.batch=100",
				   text_shown(shown, sizeof(shown), equals ? "..." : assignment));
	memcpy(path, assignment, length);
	path[length] = '\0';
	o.place.name = outbox_arena_text(arena, path);
	if (!o.place.name || !put(&o, root, path, equals + 1))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

/* ---- variables ------------------------------------------------------------------------------ */

/* OUTBOX_TARGETS_EVENTS_BATCH for targets.events.batch. False: too long for a key of ours. */
static bool variable_name(const char *path, char out[KEY_PATH_MAX])
{
	int n = snprintf(out, KEY_PATH_MAX, PREFIX "_%s", path);

	if (n < 0 || n >= KEY_PATH_MAX)
		return false;
	for (char *c = out; *c; c++) {
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
		else if (*c == '-' || *c == '.')
			*c = '_';
	}
	return true;
}

/* Is it ours to understand: OUTBOX_RELAY_..., not OUTBOX_STORE? */
static bool is_ours(const char *name)
{
	char start[KEY_PATH_MAX];

	for (size_t i = 0; i < schema_root.count; i++)
		if (variable_name(schema_root.fields[i].name, start) &&
		    strncmp(name, start, strlen(start)) == 0 && name[strlen(start)] == '_')
			return true;
	return false;
}

/* The keys that a variable stands for. */
struct search {
	const char *name;
	char path[KEY_PATH_MAX], other[KEY_PATH_MAX]; /* "": none */
	struct nearest nearest;                       /* its best is in nearest_name */
	char nearest_name[KEY_PATH_MAX];
};

static void look_at_key(void *context, const struct leaf *leaf)
{
	struct search *search = context;
	char name[KEY_PATH_MAX];

	if (!variable_name(leaf->path, name))
		return;
	if (strcmp(name, search->name) == 0)
		memcpy(*search->path ? search->other : search->path, leaf->path,
		       strlen(leaf->path) + 1);
	nearest_offer(&search->nearest, name);
	if (search->nearest.best == name)
		search->nearest.best = memcpy(search->nearest_name, name, strlen(name) + 1);
}

/* False: out of memory. */
static bool take_variable(const struct override *o, struct node *root, const char *value)
{
	struct search search = { .name = o->place.name };

	nearest_init(&search.nearest, search.name);
	schema_walk(&schema_root, root, NULL, look_at_key, &search);
	if (*search.other)
		problems_add(o->problems, &o->place,
			     "stands for both %s and %s; use --set, or other names", search.path,
			     search.other);
	else if (!*search.path && search.nearest.best)
		problems_add(o->problems, &o->place, "this variable sets no key; did you mean %s?",
			     search.nearest.best);
	else if (!*search.path)
		problems_add(o->problems, &o->place,
			     "this variable sets no key; outbox config show lists the keys");
	else if (text_has_control(value, strlen(value)))
		problems_add(o->problems, &o->place, "holds a control character or a line break");
	else
		return put(o, root, search.path, value);
	return true;
}

int override_environment(struct node *root, char *const *environment, struct outbox_arena *arena,
			 struct problems *problems, struct outbox_error *err)
{
	struct override o = { .arena = arena, .problems = problems };

	for (; environment && *environment; environment++) {
		size_t length = strcspn(*environment, "=");
		char *name;

		if (!is_ours(*environment) || !(*environment)[length])
			continue;
		name = outbox_arena_copy(arena, *environment, length);
		o.place = (struct place){ .origin = ORIGIN_ENVIRONMENT, .name = name };
		if (!name || !take_variable(&o, root, *environment + length + 1))
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	return OUTBOX_OK;
}
