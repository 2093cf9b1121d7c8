/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ${VAR} and ${VAR:-default} in texts; $${ is a ${ that stays. What a variable holds is taken as it is,
 * never looked through again, and every other $ is just a character.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "config/schema.h"

#include <string.h>

#define EXPANDED_MAX ((size_t)64 << 10)
#define VARIABLE_MAX ((size_t)1 << 20) /* more than any system allows */

static const char *environment_find(char *const *environment, const char *name, size_t length)
{
	for (; environment && *environment; environment++)
		if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

static size_t name_length(const char *text)
{
	if (strspn(text, "0123456789"))
		return 0;
	return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
}

/* The ${...} at text; returns what is behind it, NULL after a problem. */
static const char *expand_one(const struct node *node, const char *text, char *const *environment,
			      struct buf *out, struct problems *problems)
{
	const char *name = text + 2, *end = strchr(name, '}'), *value;
	size_t length = name_length(name);

	if (!end || !length || (name[length] != '}' && strncmp(name + length, ":-", 2) != 0)) {
		/* the text is not shown: it may be part of a password */
		problems_about(problems, node,
			       "has a ${ that does not begin a variable; write ${NAME} or ${NAME:-default}, or "
			       "$${ for a literal ${");
		return NULL;
	}
	value = environment_find(environment, name, length);
	if (value && *value) {
		if (text_has_control(value, strlen(value))) {
			problems_about(problems, node,
				       "the variable %.*s holds a control character or a line break",
				       (int)length, name);
			return NULL;
		}
		buf_text(out, value);
	} else if (name[length] == ':') {
		buf_append(out, name + length + 2, (size_t)(end - name) - length - 2);
	} else {
		problems_about(problems, node,
			       "the variable %.*s is %s; set it, or write ${%.*s:-default}",
			       (int)length, name, value ? "empty" : "not set", (int)length, name);
		return NULL;
	}
	return end + 1;
}

static int expand_text(struct node *node, char *const *environment, struct outbox_arena *arena,
		       struct problems *problems, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(EXPANDED_MAX + VARIABLE_MAX);
	const char *text = node->text;

	while (text && *text && out.size <= EXPANDED_MAX) {
		if (strncmp(text, "$${", 3) == 0) {
			buf_text(&out, "${");
			text += 3;
		} else if (strncmp(text, "${", 2) == 0) {
			text = expand_one(node, text, environment, &out, problems);
		} else {
			buf_char(&out, *text++);
		}
	}
	if (out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (out.size > EXPANDED_MAX)
		problems_about(problems, node, "longer than 64 KiB");
	node->broken = !text || out.size > EXPANDED_MAX;
	if (node->broken)
		return OUTBOX_OK;
	node->text = outbox_arena_text(arena, buf_str(&out));
	return node->text ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* The next node in the order of the file, without recursion. */
static struct node *following(struct node *node)
{
	if (node->first)
		return node->first;
	while (node && !node->next)
		node = node->parent;
	return node ? node->next : NULL;
}

int expand_tree(struct node *root, char *const *environment, struct outbox_arena *arena,
		struct problems *problems, struct outbox_error *err)
{
	for (struct node *node = root; node; node = following(node)) {
		int r = OUTBOX_OK;

		if (node->kind == NODE_TEXT && strstr(node->text, "${"))
			r = expand_text(node, environment, arena, problems, err);
		if (r)
			return r;
	}
	return OUTBOX_OK;
}
