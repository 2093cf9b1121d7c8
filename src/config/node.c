/* SPDX-License-Identifier: Apache-2.0 */
#include "config/node.h"

#include "base/buf.h"
#include "base/text.h"

#include <string.h>

struct node *node_add(struct outbox_arena *arena, struct node *parent, enum node_kind kind,
		      const char *key)
{
	struct node *node = outbox_arena_alloc(arena, sizeof(*node));

	if (!node)
		return NULL;
	node->kind = kind;
	node->key = key;
	node->parent = parent;
	if (!parent)
		return node;
	if (parent->last) {
		node->index = parent->last->index + 1;
		parent->last->next = node;
	} else {
		parent->first = node;
	}
	parent->last = node;
	return node;
}

struct node *node_find(const struct node *map, const char *key)
{
	if (!map || map->kind != NODE_MAP)
		return NULL;
	for (struct node *node = map->first; node; node = node->next)
		if (strcmp(node->key, key) == 0)
			return node;
	return NULL;
}

const char *node_name(const struct node *item)
{
	const struct node *name = node_find(item, "name");

	return name && name->kind == NODE_TEXT && !name->nothing ? name->text : NULL;
}

struct node *node_named(const struct node *list, const char *name)
{
	for (struct node *item = list ? list->first : NULL; item; item = item->next)
		if (node_name(item) && strcmp(node_name(item), name) == 0)
			return item;
	return NULL;
}

void node_path(const struct node *node, struct buf *out)
{
	const struct node *chain[YAML_DEPTH_MAX + 2];
	size_t n = 0;
	char shown[80];

	for (; node && node->parent && n < sizeof(chain) / sizeof(chain[0]); node = node->parent)
		chain[n++] = node;
	while (n > 0) {
		const struct node *at = chain[--n];

		if (at->parent->kind == NODE_LIST) {
			buf_printf(out, "[%zu]", at->index);
			if (node_name(at))
				buf_printf(out, " \"%s\"",
					   text_shown(shown, sizeof(shown), node_name(at)));
			continue;
		}
		if (at->parent->parent)
			buf_text(out, at->parent->parent->kind == NODE_LIST ? ", " : ".");
		buf_text(out, text_shown(shown, sizeof(shown), at->key));
	}
}

void place_format(const struct place *place, struct buf *out)
{
	char shown[200];

	switch (place->origin) {
	case ORIGIN_FILE:
		buf_text(out, text_shown(shown, sizeof(shown), place->name));
		if (place->line)
			buf_printf(out, ":%zu:%zu", place->line, place->column);
		return;
	case ORIGIN_ENVIRONMENT:
		buf_text(out, text_shown(shown, sizeof(shown), place->name));
		return;
	case ORIGIN_SET:
		buf_printf(out, "--set %s", text_shown(shown, sizeof(shown), place->name));
		return;
	case ORIGIN_OPTION:
		buf_text(out, text_shown(shown, sizeof(shown), place->name ? place->name : ""));
		return;
	case ORIGIN_DEFAULT:
		break;
	}
	buf_text(out, "default");
}
