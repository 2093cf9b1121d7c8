/* SPDX-License-Identifier: Apache-2.0 */
#include "config/problems.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <stdarg.h>
#include <stdio.h>

static void add(struct problems *problems, const struct place *place, const char *text)
{
	struct problem *problem;

	/* one more is told like the others: "and 1 more" would take a line, too */
	if (problems->count == PROBLEMS_MAX + 1) {
		problems->count--;
		problems->more++;
	}
	if (problems->more) {
		problems->more++;
		return;
	}
	problem = &problems->items[problems->count++];
	problem->place = *place;
	/* the tree and its texts may be gone when people read this */
	snprintf(problem->name, sizeof(problem->name), "%s", place->name ? place->name : "");
	problem->place.name = NULL;
	snprintf(problem->text, sizeof(problem->text), "%s", text);
}

void problems_add(struct problems *problems, const struct place *place, const char *format, ...)
{
	char text[sizeof(problems->items[0].text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	add(problems, place, text);
}

void problems_about(struct problems *problems, const struct node *node, const char *format, ...)
{
	_cleanup_(buf_deinit) struct buf path = BUF_INIT(8000);
	char text[400], whole[sizeof(problems->items[0].text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* an option says by itself what it is about */
	if (node->place.origin != ORIGIN_OPTION || !node->place.name)
		node_path(node, &path);
	problems->no_memory |= path.failed;
	snprintf(whole, sizeof(whole), "%.200s%s%s", buf_str(&path), path.size ? ": " : "", text);
	add(problems, &node->place, whole);
}

static bool behind(const struct place *a, const struct place *b)
{
	if (a->origin != b->origin)
		return a->origin > b->origin;
	if (a->line != b->line)
		return a->line > b->line;
	return a->column > b->column;
}

void problems_sort(struct problems *problems)
{
	for (size_t i = 1; i < problems->count; i++) {
		struct problem moved = problems->items[i];
		size_t j = i;

		for (; j > 0 && behind(&problems->items[j - 1].place, &moved.place); j--)
			problems->items[j] = problems->items[j - 1];
		problems->items[j] = moved;
	}
}

void problem_format(const struct problem *problem, struct buf *out)
{
	struct place place = problem->place;

	place.name = problem->name;
	place_format(&place, out);
	buf_printf(out, "%s%s", out->size ? ": " : "", problem->text);
}
