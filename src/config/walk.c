/* SPDX-License-Identifier: Apache-2.0 */
#include "config/schema.h"

#include <stdio.h>
#include <string.h>

struct walk {
	void (*visit)(void *context, const struct leaf *leaf);
	void *context;
};

static void walk_map(const struct walk *walk, const struct record *schema, const struct leaf *map);

/* False: too long for a key of ours. */
static bool join(char out[KEY_PATH_MAX], const char *path, const char *word)
{
	int n = snprintf(out, KEY_PATH_MAX, "%s%s%s", path, *path ? "." : "", word);

	return n >= 0 && n < KEY_PATH_MAX;
}

static void walk_list(const struct walk *walk, const struct record *schema, const struct leaf *list)
{
	const struct field_list *values = list->value;
	size_t count = values ? values->count : FIELD_LIST_MAX, i = 0;
	char path[KEY_PATH_MAX];

	for (const struct node *item = list->node ? list->node->first : NULL; item && i < count;
	     item = item->next, i++) {
		const char *name = node_name(item);
		struct leaf at = { .path = path, .node = item, .reload = list->reload };

		if (values)
			at.value = (const char *)values->items + i * schema->size;
		if (name && !strchr(name, '.') && join(path, list->path, name))
			walk_map(walk, schema, &at);
	}
}

static void walk_map(const struct walk *walk, const struct record *schema, const struct leaf *map)
{
	char path[KEY_PATH_MAX];

	for (size_t i = 0; i < schema->count; i++) {
		const struct field *key = &schema->fields[i];
		unsigned own = key->flags & (FIELD_LIVE | FIELD_RESTART);
		struct leaf at = { .key = key,
				   .path = path,
				   .node = node_find(map->node, key->name),
				   .reload = own ? own : map->reload };

		if (map->value)
			at.value = (const char *)map->value + key->offset;
		if (!join(path, map->path, key->name))
			continue;
		if (key->type == FIELD_OBJECT)
			walk_map(walk, key->of, &at);
		else if (key->type == FIELD_LIST)
			walk_list(walk, key->of, &at);
		else
			walk->visit(walk->context, &at);
	}
}

void schema_walk(const struct record *schema, const struct node *map, const void *value,
		 void (*visit)(void *context, const struct leaf *leaf), void *context)
{
	struct walk walk = { visit, context };

	walk_map(&walk, schema, &(struct leaf){ .path = "", .node = map, .value = value });
}
