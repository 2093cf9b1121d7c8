/* SPDX-License-Identifier: Apache-2.0 */
/* The tree against the tables. Goes on after a mistake, so that all of them are told. */
#include "config/check.h"
#include "config/schema.h"

#include <string.h>

struct reader {
	struct field_context context;
	struct problems *problems;
	size_t broken; /* values that were found wrong before */
	bool no_memory;
};

static void read_map(struct reader *reader, const struct record *schema, const struct node *map,
		     void *value);

/* What is wrong with a value is told, except that memory is not the file's fault. */
static void report_problem(struct reader *reader, const struct node *node, int r,
			   const struct outbox_error *err)
{
	if (r == OUTBOX_ENOMEM)
		reader->no_memory = true;
	else if (r)
		problems_about(reader->problems, node, "%s", err->message);
}

static const char *node_kind_name(const struct node *node)
{
	return node->kind == NODE_MAP    ? "keys and values"
	       : node->kind == NODE_LIST ? "a list"
					 : "a value";
}

static void read_texts(struct reader *reader, const struct field *key, const struct node *list,
		       void *value)
{
	for (const struct node *item = list->first; item; item = item->next) {
		struct outbox_error err = OUTBOX_ERROR_INIT;

		if (item->kind != NODE_TEXT)
			problems_about(reader->problems, item, "must be a value, not %s",
				       node_kind_name(item));
		else if (item->broken)
			reader->broken++;
		else
			report_problem(reader, item,
				       field_add(key, item->nothing ? "" : item->text,
						 &reader->context, value, &err),
				       &err);
	}
}

static void read_leaf(struct reader *reader, const struct field *key, const struct node *node,
		      void *value)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (node->kind == NODE_LIST && field_is_list(key->type)) {
		read_texts(reader, key, node, value);
		return;
	}
	if (node->kind != NODE_TEXT) {
		problems_about(reader->problems, node, "must be %s, not %s",
			       field_is_list(key->type) ? "a list" : "one value",
			       node_kind_name(node));
		return;
	}
	if (node->broken) {
		reader->broken++;
		return;
	}
	report_problem(reader, node,
		       field_parse(key, node->nothing ? "" : node->text, &reader->context, value,
				   &err),
		       &err);
}

static void read_list(struct reader *reader, const struct field *key, const struct node *node,
		      struct field_list *value)
{
	size_t count = 0, i = 0;

	for (const struct node *item = node->first; node->kind == NODE_LIST && item;
	     item = item->next)
		count++;
	if (node->kind != NODE_LIST || count == 0) {
		problems_about(reader->problems, node,
			       "must be a list with at least one entry: - name: ...");
		return;
	}
	if (count > FIELD_LIST_MAX) {
		problems_about(reader->problems, node, "%zu entries, at most %d", count,
			       FIELD_LIST_MAX);
		return;
	}
	value->items = outbox_arena_alloc(reader->context.arena, count * key->of->size);
	if (!value->items) {
		reader->no_memory = true;
		return;
	}
	value->count = count;
	for (const struct node *item = node->first; item; item = item->next, i++)
		read_map(reader, key->of, item, (char *)value->items + i * key->of->size);
	check_names(node, reader->problems);
}

static void read_nothing(struct reader *reader, const struct field *key, const struct node *map,
			 void *value)
{
	static const struct node nowhere = { .kind = NODE_MAP };
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if ((key->flags & FIELD_REQUIRED))
		problems_about(reader->problems, map ? map : &nowhere, "%s is missing: %s%s%s",
			       key->name, key->help, key->example ? ", like " : "",
			       key->example ? key->example : "");
	else if (key->type == FIELD_OBJECT)
		read_map(reader, key->of, NULL, value);
	else if (key->fallback)
		report_problem(reader, map,
			       field_parse(key, key->fallback, &reader->context, value, &err), &err);
}

static void unknown_key(struct reader *reader, const struct record *schema, const struct node *node)
{
	struct node at = *node;
	const char *nearest = fields_nearest(schema, node->key);

	at.place = node->place.origin == ORIGIN_FILE ? node->key_place : node->place;
	if (nearest)
		problems_about(reader->problems, &at, "there is no such key; did you mean %s?",
			       nearest);
	else
		problems_about(reader->problems, &at,
			       "there is no such key; outbox config reference lists them");
}

static size_t mistakes(const struct reader *reader)
{
	return reader->problems->count + reader->problems->more + reader->broken;
}

static void read_key(struct reader *reader, const struct field *key, const struct node *map,
		     void *value)
{
	const struct node *node = node_find(map, key->name);

	if (!node)
		read_nothing(reader, key, map, value);
	else if (key->type == FIELD_OBJECT)
		read_map(reader, key->of, node, value);
	else if (key->type == FIELD_LIST)
		read_list(reader, key, node, value);
	else
		read_leaf(reader, key, node, value);
}

/* The map, or NULL for "relay:" with all its keys commented out; false: it is something else. */
static bool as_map(struct reader *reader, const struct node **map)
{
	const struct node *node = *map;
	bool nothing = node && node->kind == NODE_TEXT && node->nothing;

	if (nothing && node->key)
		*map = NULL;
	if (!*map || node->kind == NODE_MAP)
		return true;
	problems_about(reader->problems, node, "must be keys and values, not %s",
		       nothing ? "nothing" : node_kind_name(node));
	return false;
}

static void read_map(struct reader *reader, const struct record *schema, const struct node *map,
		     void *value)
{
	size_t before = mistakes(reader);

	if (schema->initial)
		memcpy(value, schema->initial, schema->size);
	if (!as_map(reader, &map))
		return;
	for (const struct node *node = map ? map->first : NULL; node; node = node->next)
		if (!fields_find(schema, node->key))
			unknown_key(reader, schema, node);
	for (size_t i = 0; i < schema->count && !reader->no_memory; i++)
		read_key(reader, &schema->fields[i], map, (char *)value + schema->fields[i].offset);
	/* what goes together with a wrong value nobody knows */
	if (schema->check && mistakes(reader) == before)
		schema->check(map, value, reader->problems);
}

int schema_read(const struct record *schema, const struct node *map, struct outbox_arena *arena,
		struct problems *problems, void *value, struct outbox_error *err)
{
	struct reader reader = { .context.arena = arena, .problems = problems };

	read_map(&reader, schema, map, value);
	return reader.no_memory ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory") : OUTBOX_OK;
}
