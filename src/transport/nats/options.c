/* SPDX-License-Identifier: Apache-2.0 */
/* What the URL says. */

#include "transport/nats/driver.h"

#include "base/secret.h"
#include "base/text.h"

#include <string.h>

#define REPLY_MAX 400
#define MSG_ID_MAX 65536 /* more than a server takes in headers */

static int copy(const char *text, char **ret_text, struct outbox_error *err)
{
	*ret_text = strdup(text);
	return *ret_text ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static int set_subject(struct nats_transport *t, const char *path, struct outbox_error *err)
{
	const char *text = path + (path[0] == '/');
	char shown[100];
	int r;

	if (!text[0])
		text = "{type}";
	r = template_parse("subject (the URL's path)", text, &t->subject, err);
	if (r != OUTBOX_OK)
		return r;
	t->dollar = text[0] == '$';
	t->constant = template_is_constant(&t->subject);
	if (t->constant && !nats_tokens_valid(text, true))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "\"%s\" is not a subject to publish to; write words with dots between "
				   "them, without wildcards: shop.{type}",
				   text_shown(shown, sizeof(shown), text));
	return OUTBOX_OK;
}

static int set_tokens(struct url *url, const char *option, const char *normal, bool dots,
		      char **ret_text, struct outbox_error *err)
{
	const char *value = url_option(url, option);
	char shown[100];

	if (!value)
		value = normal;
	if (!value)
		return OUTBOX_OK;
	if (!nats_tokens_valid(value, dots) || strlen(value) > 100)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option %s: \"%s\" has a space, %sa wildcard, or is too long",
				   option, text_shown(shown, sizeof(shown), value),
				   dots ? "" : "a dot, ");
	return copy(value, ret_text, err);
}

/* Nats-Msg-Id: the message's id, or with the target's name behind it. */
static int set_msg_id(struct nats_transport *t, struct url *url, const char *target,
		      struct outbox_error *err)
{
	const char *value = "id";
	int r = url_choice(url, "msg_id", "id or target", &value, err);

	if (r != OUTBOX_OK || strcmp(value, "id") == 0)
		return r;
	if (!target || !target[0] || strpbrk(target, "\r\n"))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option msg_id=target: the target has no name that can be sent");
	if (asprintf(&t->suffix, "@%s", target) < 0) {
		t->suffix = NULL;
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	return OUTBOX_OK;
}

static int set_login(struct nats_transport *t, struct url *url, struct outbox_error *err)
{
	const char *token_file = url_option(url, "token_file"), *nkey = url_option(url, "nkey");
	int r = OUTBOX_OK;

	if (token_file)
		r = secret_read("token_file", token_file, &t->token, err);
	if (r == OUTBOX_OK)
		r = endpoint_file(url, "creds", &t->creds, err);
	if (r == OUTBOX_OK && nkey)
		r = copy(nkey, &t->nkey, err);
	if (r == OUTBOX_OK)
		r = endpoint_file(url, "nkey_seed", &t->seed, err);
	if (r != OUTBOX_OK)
		return r;
	if (!t->nkey != !t->seed)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "options nkey (the public key) and nkey_seed (a file) belong together; "
				   "give both or none");
	if (!t->broker.endpoint.user != !t->broker.endpoint.password)
		return outbox_fail_detail(
			err, OUTBOX_ECONFIG, OUTBOX_DETAIL_PASSWORD,
			"a user needs a password: write user:password@ or password_file=; a "
			"token goes to token_file=");
	if (!!t->broker.endpoint.user + !!t->token + !!t->creds + !!t->nkey > 1)
		return outbox_fail(
			err, OUTBOX_ECONFIG,
			"more than one of user, token_file, creds and nkey was given; give one");
	return OUTBOX_OK;
}

int nats_configure(struct broker *broker, struct url *url,
		   const struct outbox_transport_config *config, struct outbox_error *err)
{
	struct nats_transport *t = nats_downcast(&broker->base);
	int r;

	wire_init(&t->wire, config->clock);
	t->number = 1;
	t->reply.max = REPLY_MAX;
	t->text.max = NATS_SUBJECT_MAX;
	t->msg_id.max = MSG_ID_MAX;
	r = set_subject(t, url->path, err);
	if (r == OUTBOX_OK)
		r = set_tokens(url, "stream", NULL, false, &t->stream, err);
	if (r == OUTBOX_OK)
		r = set_msg_id(t, url, config->target, err);
	if (r == OUTBOX_OK)
		r = set_tokens(url, "inbox", "_INBOX", true, &t->inbox_prefix, err);
	return r == OUTBOX_OK ? set_login(t, url, err) : r;
}
