/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subjects and headers go on the wire as they are, and a line break in one would be a second command to the server. So
 * everything is looked at here before, and what cannot be sent as it is, is refused.
 */

#include "transport/nats/driver.h"

#include "base/text.h"

#include <string.h>
#include <strings.h>

static bool is_wildcard(const char *token, size_t length)
{
	return length == 1 && (token[0] == '*' || token[0] == '>');
}

bool nats_tokens_valid(const char *text, bool dots)
{
	const char *token = text, *at;
	bool ascii = true;

	for (at = text;; at++) {
		unsigned char c = (unsigned char)*at;

		if (c == '\0' || c == '.') {
			if (at == token || is_wildcard(token, (size_t)(at - token)))
				return false;
			if (c == '\0')
				break;
			if (!dots)
				return false;
			token = at + 1;
		} else if (c <= ' ' || c == 0x7f) {
			return false;
		}
		ascii &= c < 0x80;
	}
	return ascii || !text_has_control(text, (size_t)(at - text));
}

int nats_subject(struct nats_transport *t, const struct outbox_message *message,
		 struct outbox_error *err)
{
	char shown[200];
	int r;

	buf_clear(&t->text);
	r = template_render(&t->subject, message, &t->text, err);
	if (r != OUTBOX_OK)
		return r;
	if (!nats_tokens_valid(buf_str(&t->text), true))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "\"%s\" cannot be a subject: it is words with dots between them, without "
				   "spaces, control characters and wildcards",
				   text_shown(shown, sizeof(shown), buf_str(&t->text)));
	/* $JS.API.STREAM.DELETE.x is a command. A message must not be able to give it. */
	if (t->text.data[0] == '$' && !t->dollar)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "the subject \"%s\" begins with $, where the server takes commands; begin "
				   "the target's subject with another word",
				   text_shown(shown, sizeof(shown), buf_str(&t->text)));
	return OUTBOX_OK;
}

int nats_msg_id(struct nats_transport *t, const struct outbox_message *message, const char **ret_id,
		struct outbox_error *err)
{
	const char *id = message->id;
	char shown[100];

	if (strpbrk(id, "\r\n"))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "the id has a line break, which NATS cannot carry in a header");
	/* The server skips it: " 7" would be a repeat of "7", and never be stored. */
	if (id[0] == ' ' || id[0] == '\t')
		return outbox_fail(err, OUTBOX_EINVAL,
				   "the id \"%s\" begins with a blank, which NATS does not keep; give it "
				   "another id",
				   text_shown(shown, sizeof(shown), id));
	if (t->suffix) {
		buf_clear(&t->msg_id);
		buf_text(&t->msg_id, id);
		buf_text(&t->msg_id, t->suffix);
		if (t->msg_id.failed)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		id = buf_str(&t->msg_id);
	}
	*ret_id = id;
	return OUTBOX_OK;
}

static bool name_valid(const char *name)
{
	for (const char *at = name; *at; at++)
		if (*at <= ' ' || *at > '~' || *at == ':')
			return false;
	return name[0];
}

int nats_header_check(const struct outbox_header *header, struct outbox_error *err)
{
	char shown[100];

	if (!name_valid(header->name))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "header \"%s\": a NATS header's name is printable ASCII without spaces "
				   "and colons",
				   text_shown(shown, sizeof(shown), header->name));
	/* Nats-Rollup purges a stream, Nats-Expected-... makes it refuse. */
	if (strncasecmp(header->name, "Nats-", 5) == 0)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"header \"%s\": names with Nats- are commands to the server; rename it",
			text_shown(shown, sizeof(shown), header->name));
	if (strchr(header->value, '\n') || strchr(header->value, '\r'))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "header \"%s\": its value has a line break, which NATS cannot carry",
				   text_shown(shown, sizeof(shown), header->name));
	return OUTBOX_OK;
}
