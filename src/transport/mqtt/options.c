/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	mqtt://user:password@host:port,host:port/TOPIC?qos=2&retain=yes&version=3.1.1&client_id=NAME&keepalive=SECONDS
 */

#include "transport/mqtt/driver.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define KEEPALIVE_MIN 5 /* seconds; the library refuses less */

static int set_topic(struct mqtt_transport *t, const char *path, struct outbox_error *err)
{
	const char *text = path + (path[0] == '/'), *fault = NULL;
	char shown[100];
	int r;

	if (!text[0])
		text = "{type}";
	r = template_parse("topic (the URL's path)", text, &t->topic, err);
	if (r != OUTBOX_OK)
		return r;
	t->dollar = text[0] == '$';
	t->constant = template_is_constant(&t->topic);
	if (t->constant)
		fault = mqtt_topic_fault(text, strlen(text));
	else if (strpbrk(text, "+#"))
		fault = "has a wildcard (+ or #)";
	if (!fault && strncmp(text, "$SYS", 4) == 0)
		fault = "belongs to the broker";
	if (fault)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "\"%s\" is not a topic to publish to: it %s; write shop/{type}",
				   text_shown(shown, sizeof(shown), text), fault);
	return OUTBOX_OK;
}

/* 3.1.1 has no properties, so all that is not in the body would be lost. */
static int set_version(struct mqtt_transport *t, struct url *url, int envelope,
		       struct outbox_error *err)
{
	const char *version = "5";
	int r = url_choice(url, "version", "5 or 3.1.1", &version, err);

	if (r != OUTBOX_OK)
		return r;
	t->v5 = strcmp(version, "5") == 0;
	if (t->v5)
		return OUTBOX_OK;
	t->broker.envelope = OUTBOX_ENVELOPE_CE_STRUCTURED;
	if (envelope == OUTBOX_ENVELOPE_CE_BINARY || envelope == OUTBOX_ENVELOPE_NATIVE)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option version=3.1.1: this version has no properties for an envelope "
				   "with headers; choose the envelope structured or external");
	return OUTBOX_OK;
}

static int set_login(struct mqtt_transport *t, struct url *url, struct outbox_error *err)
{
	const struct endpoint *e = &t->broker.endpoint;
	const char *id = url_option(url, "client_id");

	if (!e->user && e->password)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: a password without a user; write mqtt://user@host",
				   t->broker.shown);
	if (!id)
		return OUTBOX_OK;
	if (!id[0] || strlen(id) > MQTT_STRING_MAX ||
	    mosquitto_validate_utf8(id, (int)strlen(id)) != MOSQ_ERR_SUCCESS)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option client_id: is empty, too long, or has control characters");
	t->client_id = strdup(id);
	return t->client_id ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

int mqtt_configure(struct broker *broker, struct url *url,
		   const struct outbox_transport_config *config, struct outbox_error *err)
{
	struct mqtt_transport *t = mqtt_downcast(&broker->base);
	const char *qos = "1";
	int r;

	t->text = (struct buf)BUF_INIT((size_t)1 << 20);
	t->waiting = calloc(UINT16_MAX + 1, sizeof(*t->waiting));
	if (!t->waiting)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = set_topic(t, url->path, err);
	if (r == OUTBOX_OK)
		r = url_choice(url, "qos", "1 or 2", &qos, err);
	t->qos = strcmp(qos, "2") == 0 ? 2 : 1;
	if (r == OUTBOX_OK)
		r = url_flag(url, "retain", &t->retain, err);
	if (r == OUTBOX_OK)
		r = set_version(t, url, config->envelope, err);
	if (r == OUTBOX_OK)
		r = url_number(url, "keepalive", 0, UINT16_MAX, &t->keepalive, err);
	if (r == OUTBOX_OK && t->keepalive > 0 && t->keepalive < KEEPALIVE_MIN)
		r = outbox_fail(err, OUTBOX_ECONFIG,
				"keepalive=%d: write 0 (none) or a number of seconds from %d to %d",
				(int)t->keepalive, KEEPALIVE_MIN, UINT16_MAX);
	return r == OUTBOX_OK ? set_login(t, url, err) : r;
}
