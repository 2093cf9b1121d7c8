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

#define PATH_MAX_BYTES 400
#define PREFIX "OUTBOX"

struct override {
	struct outbox_arena *arena;
	struct problems *problems;
	struct place place;
};

/* A variable that would be listened to. */
struct variable {
	const char *name, *path;
	struct variable *next;
};

struct variables {
	struct outbox_arena *arena;
	struct variable *first;
	bool no_memory;
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
	struct nearest nearest;
	char shown[80];

	nearest_init(&nearest, word);
	for (size_t i = 0; i < schema->count; i++)
		nearest_offer(&nearest, schema->fields[i].name);
	text_shown(shown, sizeof(shown), word);
	if (nearest.best)
		problems_add(o->problems, &o->place, "there is no key \"%s\"; did you mean %s?",
			     shown, nearest.best);
	else
		problems_add(o->problems, &o->place,
			     "there is no key \"%s\"; outbox config reference lists them", shown);
}

/* The entry of this name; NULL after a problem. */
static struct node *find_item(const struct override *o, const struct node *list, const char *key,
			      const char *name)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(300);
	char shown[80];

	for (struct node *item = list ? list->first : NULL; item; item = item->next) {
		if (!node_name(item))
			continue;
		if (strcmp(node_name(item), name) == 0)
			return item;
		buf_printf(&names, "%s%s", names.size ? ", " : "",
			   text_shown(shown, sizeof(shown), node_name(item)));
	}
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
	problems_add(o->problems, &o->place, "is no value of its own; name a key in it");
	return true;
}

int override_set(struct node *root, const char *assignment, struct outbox_arena *arena,
		 struct problems *problems, struct outbox_error *err)
{
	const char *equals = strchr(assignment, '=');
	struct override o = { .arena = arena, .problems = problems };
	char path[PATH_MAX_BYTES], shown[80];
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

/* NAME_KEY in capitals. False: too long for a key of ours. */
static bool join(char out[PATH_MAX_BYTES], const char *start, const char *word)
{
	int n = snprintf(out, PATH_MAX_BYTES, "%s_%s", start, word);

	if (n < 0 || n >= PATH_MAX_BYTES)
		return false;
	for (char *c = out + strlen(start); *c; c++) {
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
		else if (*c == '-')
			*c = '_';
	}
	return true;
}

static bool join_path(char out[PATH_MAX_BYTES], const char *start, const char *word)
{
	int n = snprintf(out, PATH_MAX_BYTES, "%s%s%s", start, *start ? "." : "", word);

	return n >= 0 && n < PATH_MAX_BYTES;
}

static void collect(struct variables *all, const struct record *schema, const struct node *map,
		    const char *name, const char *path);

static void collect_items(struct variables *all, const struct field *key, const struct node *list,
			  const char *name, const char *path)
{
	char item_name[PATH_MAX_BYTES], item_path[PATH_MAX_BYTES];
	size_t n = 0;

	for (struct node *item = list ? list->first : NULL; item && n < FIELD_LIST_MAX;
	     item = item->next, n++) {
		const char *called = node_name(item);

		if (called && !strchr(called, '.') && join(item_name, name, called) &&
		    join_path(item_path, path, called))
			collect(all, key->of, item, item_name, item_path);
	}
}

static void collect_leaf(struct variables *all, const char *name, const char *path)
{
	struct variable *variable = outbox_arena_alloc(all->arena, sizeof(*variable));

	if (variable) {
		variable->name = outbox_arena_text(all->arena, name);
		variable->path = outbox_arena_text(all->arena, path);
		variable->next = all->first;
		all->first = variable;
	}
	all->no_memory |= !variable || !variable->name || !variable->path;
}

static void collect(struct variables *all, const struct record *schema, const struct node *map,
		    const char *name, const char *path)
{
	char key_name[PATH_MAX_BYTES], key_path[PATH_MAX_BYTES];

	for (size_t i = 0; i < schema->count && !all->no_memory; i++) {
		const struct field *key = &schema->fields[i];
		const struct node *node = node_find(map, key->name);

		if (!join(key_name, name, key->name) || !join_path(key_path, path, key->name))
			continue;
		if (key->type == FIELD_OBJECT)
			collect(all, key->of, node, key_name, key_path);
		else if (key->type == FIELD_LIST)
			collect_items(all, key, node, key_name, key_path);
		else
			collect_leaf(all, key_name, key_path);
	}
}

/* Is it ours to understand: OUTBOX_RELAY_..., not OUTBOX_STORE? */
static bool is_ours(const char *name)
{
	char start[PATH_MAX_BYTES];

	for (size_t i = 0; i < schema_root.count; i++)
		if (join(start, PREFIX, schema_root.fields[i].name) &&
		    strncmp(name, start, strlen(start)) == 0 && name[strlen(start)] == '_')
			return true;
	return false;
}

static void unknown_variable(const struct override *o, const struct variables *all, const char *name)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (const struct variable *v = all->first; v; v = v->next)
		nearest_offer(&nearest, v->name);
	if (nearest.best)
		problems_add(o->problems, &o->place, "no key has this variable; did you mean %s?",
			     nearest.best);
	else
		problems_add(o->problems, &o->place,
			     "no key has this variable; outbox config show lists the keys");
}

/* False: out of memory. */
static bool take_variable(struct override *o, const struct variables *all, struct node *root,
			  const char *value)
{
	const struct variable *found = NULL;
	char path[PATH_MAX_BYTES];

	for (const struct variable *v = all->first; v; v = v->next) {
		if (strcmp(v->name, o->place.name) != 0)
			continue;
		if (found) {
			problems_add(o->problems, &o->place,
				     "stands for both %s and %s; use --set, or other names",
				     v->path, found->path);
			return true;
		}
		found = v;
	}
	if (!found) {
		unknown_variable(o, all, o->place.name);
		return true;
	}
	if (text_has_control(value, strlen(value))) {
		problems_add(o->problems, &o->place, "holds a control character or a line break");
		return true;
	}
	memcpy(path, found->path, strlen(found->path) + 1);
	return put(o, root, path, value);
}

int override_environment(struct node *root, char *const *environment, struct outbox_arena *arena,
			 struct problems *problems, struct outbox_error *err)
{
	struct override o = { .arena = arena, .problems = problems };
	struct variables all = { .arena = arena };

	for (; environment && *environment; environment++) {
		size_t length = strcspn(*environment, "=");
		char *name;

		if (!is_ours(*environment) || !(*environment)[length])
			continue;
		if (!all.first)
			collect(&all, &schema_root, root, PREFIX, "");
		name = outbox_arena_copy(arena, *environment, length);
		o.place = (struct place){ .origin = ORIGIN_ENVIRONMENT, .name = name };
		if (all.no_memory || !name ||
		    !take_variable(&o, &all, root, *environment + length + 1))
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	return OUTBOX_OK;
}
