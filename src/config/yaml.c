/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From libyaml's events to a tree in which every node knows its line and column. A library that fills
 * structs stops at the first mistake and takes values from one file only; here people are told all of
 * them at once, and the environment and --set are laid over the tree before anything gets a type.
 *
 * Anchors, aliases and tags are refused: no configuration needs them, and ten lines of aliases can stand
 * for a billion nodes.
 */
#include "base/text.h"
#include "config/problems.h"

#include <string.h>
#include <yaml.h>

struct builder {
	const char *file;
	struct outbox_arena *arena;
	struct problems *problems;
	struct node *root;
	struct node *open; /* the map or list that is being filled */
	const char *key;   /* of the value that comes next */
	struct place key_place;
	size_t depth, nodes, documents;
	bool stop; /* nothing behind this can be understood */
	bool no_memory;
};

static struct place place_of(const struct builder *b, const yaml_mark_t *mark)
{
	return (struct place){ ORIGIN_FILE, b->file, mark->line + 1, mark->column + 1 };
}

static void refuse(struct builder *b, const struct place *place, const char *text)
{
	problems_add(b->problems, place, "%s", text);
	b->stop = true;
}

static bool in_map(const struct builder *b)
{
	return b->open && b->open->kind == NODE_MAP;
}

static struct node *add(struct builder *b, enum node_kind kind, const struct place *place)
{
	struct node *node;

	if (++b->nodes > YAML_NODES_MAX) {
		refuse(b, place, "more than 5000 values; no configuration is that large");
		return NULL;
	}
	if (in_map(b) && !b->key) {
		refuse(b, place, "a key must be a plain word");
		return NULL;
	}
	node = node_add(b->arena, b->open, kind, b->key);
	if (!node) {
		b->no_memory = b->stop = true;
		return NULL;
	}
	node->place = *place;
	node->key_place = b->key_place;
	if (!b->open)
		b->root = node;
	b->key = NULL;
	return node;
}

static void take_key(struct builder *b, const char *text, const struct place *place)
{
	const struct node *before = node_find(b->open, text);

	b->key = outbox_arena_text(b->arena, text);
	b->key_place = *place;
	if (!b->key)
		b->no_memory = b->stop = true;
	if (before)
		problems_about(b->problems,
			       &(struct node){ .parent = b->open, .key = text, .place = *place },
			       "appears twice, first on line %zu; keep one", before->key_place.line);
}

static bool is_nothing(const yaml_event_t *event)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };
	const char *text = (const char *)event->data.scalar.value;

	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

static void take_scalar(struct builder *b, const yaml_event_t *event, const struct place *place)
{
	const char *text = (const char *)event->data.scalar.value;
	struct node *node;

	if (text_has_control(text, event->data.scalar.length)) {
		refuse(b, place, "a control character or a line break; write the value on one line");
		return;
	}
	if (in_map(b) && !b->key) {
		take_key(b, text, place);
		return;
	}
	node = add(b, NODE_TEXT, place);
	if (!node)
		return;
	node->nothing = is_nothing(event);
	node->text = outbox_arena_text(b->arena, text);
	if (!node->text)
		b->no_memory = b->stop = true;
}

static void take_start(struct builder *b, enum node_kind kind, const struct place *place)
{
	struct node *node = add(b, kind, place);

	if (!node)
		return;
	b->open = node;
	if (++b->depth > YAML_DEPTH_MAX)
		refuse(b, place, "nested more than 16 deep");
}

static void take_end(struct builder *b)
{
	b->open = b->open ? b->open->parent : NULL;
	b->depth--;
}

static bool is_marked(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return event->data.scalar.anchor || event->data.scalar.tag;
	case YAML_SEQUENCE_START_EVENT:
		return event->data.sequence_start.anchor || event->data.sequence_start.tag;
	case YAML_MAPPING_START_EVENT:
		return event->data.mapping_start.anchor || event->data.mapping_start.tag;
	case YAML_ALIAS_EVENT:
		return true;
	default:
		return false;
	}
}

static void take_event(struct builder *b, const yaml_event_t *event)
{
	struct place place = place_of(b, &event->start_mark);

	if (is_marked(event)) {
		refuse(b, &place,
		       "anchors (&x), aliases (*x) and tags (!x) are not supported; write the value out");
		return;
	}
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (++b->documents > 1)
			refuse(b, &place, "a second document begins here; a file may hold only one");
		return;
	case YAML_SCALAR_EVENT:
		take_scalar(b, event, &place);
		return;
	case YAML_SEQUENCE_START_EVENT:
		take_start(b, NODE_LIST, &place);
		return;
	case YAML_MAPPING_START_EVENT:
		take_start(b, NODE_MAP, &place);
		return;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		take_end(b);
		return;
	default:
		return;
	}
}

static void tell_syntax(struct builder *b, const yaml_parser_t *parser)
{
	struct place place = place_of(b, &parser->problem_mark);
	const char *what = parser->problem ? parser->problem : "cannot be read";

	if (parser->error == YAML_MEMORY_ERROR) {
		b->no_memory = true;
		return;
	}
	if (parser->error == YAML_READER_ERROR)
		problems_add(b->problems, &(struct place){ ORIGIN_FILE, b->file, 0, 0 },
			     "not YAML: %s at byte %zu", what, parser->problem_offset);
	else if (parser->context)
		problems_add(b->problems, &place, "not YAML: %s, %s of line %zu", what,
			     parser->context, parser->context_mark.line + 1);
	else
		problems_add(b->problems, &place, "not YAML: %s", what);
}

int yaml_read(const char *file, const char *text, size_t size, struct outbox_arena *arena,
	      struct problems *problems, struct node **ret_root, struct outbox_error *err)
{
	struct builder b = { .file = file, .arena = arena, .problems = problems };
	size_t before = problems->count;
	yaml_parser_t parser;
	yaml_event_t event;
	bool ended = false;

	if (!yaml_parser_initialize(&parser))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	while (!ended && !b.stop) {
		if (!yaml_parser_parse(&parser, &event)) {
			tell_syntax(&b, &parser);
			b.stop = true;
			break;
		}
		ended = event.type == YAML_STREAM_END_EVENT;
		take_event(&b, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	if (b.no_memory)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_root = b.stop && problems->count > before ? NULL : b.root;
	return OUTBOX_OK;
}
