/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/template.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "core/lifecycle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field {
	FIELD_TYPE,
	FIELD_TOPIC,
	FIELD_KEY,
	FIELD_KIND,
	FIELD_SOURCE,
	FIELD_SUBJECT,
	FIELD_ID
};

static const char *const names[] = {
	[FIELD_TYPE] = "type", [FIELD_TOPIC] = "topic",   [FIELD_KEY] = "key",
	[FIELD_KIND] = "kind", [FIELD_SOURCE] = "source", [FIELD_SUBJECT] = "subject",
	[FIELD_ID] = "id",
};

#define KNOWN_PLACES "{type} {topic} {key} {kind} {source} {subject} {id}"
#define KNOWN_FILTERS "kebab"

static const char *field_of(const struct outbox_message *m, int field)
{
	switch (field) {
	case FIELD_TYPE:
		return m->type;
	case FIELD_TOPIC:
		return m->topic;
	case FIELD_KEY:
		return m->key;
	case FIELD_KIND:
		return kind_name(m->kind);
	case FIELD_SOURCE:
		return m->source;
	case FIELD_SUBJECT:
		return m->subject;
	case FIELD_ID:
		return m->id;
	default:
		return NULL;
	}
}

void template_deinit(struct template *template)
{
	for (size_t i = 0; i < template->n_parts; i++)
		free(template->parts[i].text);
	free(template->parts);
	*template = (struct template){ 0 };
}

static int add(struct template *t, const struct template_part *part, struct outbox_error *err)
{
	struct template_part *parts = realloc(t->parts, (t->n_parts + 1) * sizeof(*parts));

	if (!parts)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	t->parts = parts;
	parts[t->n_parts++] = *part;
	return OUTBOX_OK;
}

static int add_text(struct template *t, const char *text, size_t size, struct outbox_error *err)
{
	char *copy;
	int r;

	if (!size)
		return OUTBOX_OK;
	copy = strndup(text, size);
	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = add(t, &(struct template_part){ .text = copy }, err);
	if (r != OUTBOX_OK)
		free(copy);
	return r;
}

static int unknown_place(const struct template *t, const char *what, const char *name, size_t size,
			 struct outbox_error *err)
{
	char shown[80], place[64];

	snprintf(place, sizeof(place), "%.*s", (int)(size < 60 ? size : 60), name);
	return outbox_fail(err, OUTBOX_ECONFIG, "option %s: there is no %s{%s}; there are: %s",
			   t->option, what, text_shown(shown, sizeof(shown), place),
			   what[0] ? KNOWN_FILTERS : KNOWN_PLACES);
}

/* "type" or "type|kebab". */
static int add_field(struct template *t, const char *name, size_t size, struct outbox_error *err)
{
	const char *bar = memchr(name, '|', size);
	size_t length = bar ? (size_t)(bar - name) : size, filter = bar ? size - length - 1 : 0;

	if (bar && (filter != strlen("kebab") || memcmp(bar + 1, "kebab", filter) != 0))
		return unknown_place(t, "filter in ", name, size, err);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
			return add(t, &(struct template_part){ .field = (int)i, .kebab = bar }, err);
	return unknown_place(t, "", name, size, err);
}

/* Take what stands at a brace; returns how much it was, 0 after a failure. */
static size_t take_brace(struct template *t, const char *at, int *ret_status,
			 struct outbox_error *err)
{
	const char *end;

	if (at[0] == at[1]) {
		*ret_status = add_text(t, at, 1, err);
		return 2;
	}
	end = at[0] == '{' ? strchr(at, '}') : NULL;
	if (!end) {
		*ret_status =
			outbox_fail(err, OUTBOX_ECONFIG,
				    "option %s: a \"%c\" stands alone; write {type}, or \"%c%c\" for "
				    "the character itself",
				    t->option, at[0], at[0], at[0]);
		return 0;
	}
	*ret_status = add_field(t, at + 1, (size_t)(end - at) - 1, err);
	return (size_t)(end - at) + 1;
}

int template_parse(const char *option, const char *text, struct template *ret_template,
		   struct outbox_error *err)
{
	struct template t = { .option = option };
	int r = OUTBOX_OK;

	while (*text && r == OUTBOX_OK) {
		size_t plain = strcspn(text, "{}");

		r = add_text(&t, text, plain, err);
		text += plain;
		if (r == OUTBOX_OK && *text)
			text += take_brace(&t, text, &r, err);
	}
	if (r != OUTBOX_OK) {
		template_deinit(&t);
		return r;
	}
	*ret_template = t;
	return OUTBOX_OK;
}

bool template_is_constant(const struct template *template)
{
	for (size_t i = 0; i < template->n_parts; i++)
		if (!template->parts[i].text)
			return false;
	return true;
}

static bool is_lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/*
 * Words begin behind . _ / : - and blanks, and at a capital that stands behind a small letter or before one: HTTPServer is
 * http-server. What is not ASCII stays as it is.
 */
static void append_kebab(struct buf *out, const char *text)
{
	bool begun = false, gap = false;

	for (size_t i = 0; text[i]; i++) {
		char c = text[i], before = i ? text[i - 1] : '\0';

		if (strchr("._/:- ", c)) {
			gap = true;
			continue;
		}
		gap |= is_upper(c) &&
		       (is_lower(before) || (is_upper(before) && is_lower(text[i + 1])));
		if (gap && begun)
			buf_char(out, '-');
		buf_char(out, is_upper(c) ? (char)(c - 'A' + 'a') : c);
		begun = true;
		gap = false;
	}
}

int template_render(const struct template *template, const struct outbox_message *message,
		    struct buf *out, struct outbox_error *err)
{
	for (size_t i = 0; i < template->n_parts; i++) {
		const struct template_part *part = &template->parts[i];
		const char *text = part->text ? part->text : field_of(message, part->field);
		size_t before = out->size;

		if (text && part->kebab)
			append_kebab(out, text);
		else if (text)
			buf_text(out, text);
		if (out->size == before && !out->failed)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "the message has no %s, which the target's %s needs",
					   names[part->field], template->option);
	}
	if (out->failed)
		return outbox_fail(err, OUTBOX_EINVAL, "the target's %s becomes too long",
				   template->option);
	return OUTBOX_OK;
}
