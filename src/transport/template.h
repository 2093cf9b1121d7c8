/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_TEMPLATE_H
#define TRANSPORT_TEMPLATE_H

/*
 * Where a message goes: text with places for its fields, "shop.{type}". Places: {type} {topic} {key} {kind}
 * {source} {subject} {id}; "{{" and "}}" stand for one brace. {type|kebab} writes the field as kebab-case: OrderPlaced,
 * order.placed and order_placed all become order-placed. Parsed once, when a transport is opened.
 */

#include <outbox/message.h>

#include "base/buf.h"

#include <stdbool.h>

struct template_part {
	char *text; /* NULL: a field */
	int field;  /* enum in template.c */
	bool kebab; /* the field in kebab-case */
};

struct template
{
	struct template_part *parts;
	size_t n_parts;
	const char *option; /* borrowed: whose value it is, for error texts */
};

/* ECONFIG names the option, the place that is unknown or not closed, and the places there are. */
int template_parse(const char *option, const char *text, struct template *ret_template,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
void template_deinit(struct template *template);

/* Has it no places: is it the same for every message? */
bool template_is_constant(const struct template *template);

/*
 * Append it for a message. EINVAL: the message has no such field (or it is empty); answer REJECTED with that
 * text. What characters may stand there is the driver's business.
 */
int template_render(const struct template *template, const struct outbox_message *message,
		    struct buf *out, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
