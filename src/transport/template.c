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

static int add_field(struct template *t, const char *name, size_t size, struct outbox_error *err)
{
	char shown[80], place[64];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0)
			return add(t, &(struct template_part){ .field = (int)i }, err);
	snprintf(place, sizeof(place), "%.*s", (int)(size < 60 ? size : 60), name);
	return outbox_fail(err, OUTBOX_ECONFIG,
			   "option %s: there is no {%s}; there are: " KNOWN_PLACES, t->option,
			   text_shown(shown, sizeof(shown), place));
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

int template_render(const struct template *template, const struct outbox_message *message,
		    struct buf *out, struct outbox_error *err)
{
	for (size_t i = 0; i < template->n_parts; i++) {
		const struct template_part *part = &template->parts[i];
		const char *text = part->text ? part->text : field_of(message, part->field);

		if (!text || !text[0])
			return outbox_fail(err, OUTBOX_EINVAL,
					   "the message has no %s, which the target's %s needs",
					   names[part->field], template->option);
		buf_text(out, text);
	}
	if (out->failed)
		return outbox_fail(err, OUTBOX_EINVAL, "the target's %s becomes too long",
				   template->option);
	return OUTBOX_OK;
}
