/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	amqp1://user:password@host:port,host:port/ADDRESS?session=key
 *	servicebus://POLICY@NAMESPACE/ENTITY?password_file=PATH&auth=cbs
 */

#include "transport/amqp1/driver.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

#define LINKS_DEFAULT 50
#define TOKEN_TTL_DEFAULT 3600
#define AZURE_DOMAIN ".servicebus.windows.net"

static int copy(const char *text, char **ret_text, struct outbox_error *err)
{
	*ret_text = strdup(text);
	return *ret_text ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* ---- where ------------------------------------------------------------------------------------------ */

static int set_address(struct amqp1_transport *t, struct url *url, struct outbox_error *err)
{
	const char *option = url_option(url, "address"), *path = url->path + (url->path[0] == '/');
	const char *text = option ? option : path;
	int r;

	if (option && path[0])
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "the URL's path and option address were given; give one of the two");
	if (!text[0])
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: needs an address to send to; write %s://host/orders, "
				   "%s://host/{type} or address=",
				   url->scheme, url->scheme, url->scheme);
	r = template_parse(option ? "option address" : "address (the URL's path)", text,
			   &t->address, err);
	t->constant = r == OUTBOX_OK && template_is_constant(&t->address);
	if (r == OUTBOX_OK && t->constant && strlen(text) > AMQP1_ADDRESS_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG, "the address is longer than %d bytes",
				   AMQP1_ADDRESS_MAX);
	return r;
}

/* "shop" is the namespace shop.servicebus.windows.net; connect= says where else it is to be found. */
static int set_namespace(struct amqp1_transport *t, struct url *url, struct outbox_error *err)
{
	const struct address *first = &t->broker.endpoint.addresses[0];
	const char *elsewhere = url_option(url, "connect");
	char host[sizeof(first->host) + sizeof(AZURE_DOMAIN) + 8];
	int r;

	if (!t->azure)
		return elsewhere ? outbox_fail(err, OUTBOX_ECONFIG,
					       "option connect is for servicebus://; write the host "
					       "and the port in the URL")
				 : OUTBOX_OK;
	if (t->broker.endpoint.n_addresses > 1)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "servicebus: takes one namespace, not several");
	snprintf(host, sizeof(host), "%s%s", first->host,
		 strchr(first->host, '.') ? "" : AZURE_DOMAIN);
	r = copy(host, &t->hostname, err);
	snprintf(host, sizeof(host), "%s:%d", t->hostname ? t->hostname : "", first->port);
	if (r == OUTBOX_OK)
		r = endpoint_set_hosts(&t->broker.endpoint, elsewhere ? elsewhere : host,
				       url_usual_port(url->scheme), err);
	snprintf(t->broker.shown, sizeof(t->broker.shown), "AMQP %s", t->broker.endpoint.shown);
	return r;
}

static int set_hostname(struct amqp1_transport *t, struct url *url, struct outbox_error *err)
{
	const char *name = url_option(url, "hostname");

	if (!name)
		return OUTBOX_OK;
	if (t->azure || !name[0] || strlen(name) > 255)
		return outbox_fail(
			err, OUTBOX_ECONFIG,
			"option hostname: 1 to 255 bytes, and not with servicebus://, which knows it");
	return copy(name, &t->hostname, err);
}

/* ---- who -------------------------------------------------------------------------------------------- */

static int check_auth(const struct amqp1_transport *t, struct outbox_error *err)
{
	const struct endpoint *e = &t->broker.endpoint;
	bool login = t->auth == AUTH_PLAIN || t->auth == AUTH_CBS;

	if (login && !e->user)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: no user; write %s with password_file=PATH", t->broker.shown,
				   t->azure ? "servicebus://POLICY@NAMESPACE/"
					    : "amqp1s://user@host/");
	if (login && !e->password)
		return outbox_fail_detail(err, OUTBOX_ECONFIG, OUTBOX_DETAIL_PASSWORD,
					  "%s: no password; add password_file=PATH",
					  t->broker.shown);
	if (!login && e->user)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "a user was given, and auth=%s needs none; leave one of the two out",
				   t->auth == AUTH_EXTERNAL ? "external" : "anonymous");
	if (t->auth == AUTH_EXTERNAL && !e->cert)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "auth=external logs in by a certificate; write amqp1s:// with "
				   "cert=PATH and key=PATH");
	if (t->auth == AUTH_CBS && !t->azure)
		return outbox_fail(err, OUTBOX_ECONFIG, "auth=cbs is for servicebus://");
	return OUTBOX_OK;
}

static int set_auth(struct amqp1_transport *t, struct url *url, struct outbox_error *err)
{
	static const char *const names[] = {
		[AUTH_ANONYMOUS] = "anonymous",
		[AUTH_PLAIN] = "plain",
		[AUTH_EXTERNAL] = "external",
		[AUTH_CBS] = "cbs",
	};
	const struct endpoint *e = &t->broker.endpoint;
	const char *choice = NULL;
	int r = url_choice(url, "auth", "plain, external, anonymous or cbs", &choice, err);

	if (r != OUTBOX_OK)
		return r;
	t->auth = e->user || t->azure ? AUTH_PLAIN : e->cert ? AUTH_EXTERNAL : AUTH_ANONYMOUS;
	for (size_t i = 0; choice && i < ARRAY_SIZE(names); i++)
		if (strcmp(choice, names[i]) == 0)
			t->auth = (enum amqp1_auth)i;
	return check_auth(t, err);
}

/* ---- how -------------------------------------------------------------------------------------------- */

static int set_message(struct amqp1_transport *t, struct url *url, struct outbox_error *err)
{
	const char *session = "key", *partition = "none", *capability = "none";
	int r = url_choice(url, "session", "key, correlation or none", &session, err);

	if (r == OUTBOX_OK)
		r = url_choice(url, "partition", "key or none", &partition, err);
	if (r == OUTBOX_OK)
		r = url_choice(url, "capability", "queue, topic, kind or none", &capability, err);
	if (r != OUTBOX_OK)
		return r;
	t->session_from = strcmp(session, "key") == 0    ? SESSION_KEY
			  : strcmp(session, "none") == 0 ? SESSION_NONE
							 : SESSION_CORRELATION;
	t->partition_by_key = strcmp(partition, "key") == 0;
	t->capability = strcmp(capability, "queue") == 0   ? CAPABILITY_QUEUE
			: strcmp(capability, "topic") == 0 ? CAPABILITY_TOPIC
			: strcmp(capability, "kind") == 0  ? CAPABILITY_KIND
							   : CAPABILITY_NONE;
	/* Two links then, one for each kind. */
	t->constant = t->constant && t->capability != CAPABILITY_KIND;
	return OUTBOX_OK;
}

int amqp1_configure(struct broker *broker, struct url *url,
		    const struct outbox_transport_config *config, struct outbox_error *err)
{
	struct amqp1_transport *t = amqp1_downcast(&broker->base);
	int r;

	wire_init(&t->wire, config->clock);
	t->text.max = AMQP1_ADDRESS_MAX;
	t->n_links = LINKS_DEFAULT;
	t->token_ttl = TOKEN_TTL_DEFAULT;
	t->azure = strcmp(url->scheme, "servicebus") == 0;
	r = set_namespace(t, url, err);
	if (r == OUTBOX_OK)
		r = set_hostname(t, url, err);
	if (r == OUTBOX_OK)
		r = set_auth(t, url, err);
	if (r == OUTBOX_OK)
		r = url_number(url, "links", 1, AMQP1_LINKS_MAX, &t->n_links, err);
	if (r == OUTBOX_OK)
		r = url_number(url, "token_ttl", 10, 86400, &t->token_ttl, err);
	if (r == OUTBOX_OK)
		r = set_address(t, url, err);
	if (r == OUTBOX_OK)
		r = set_message(t, url, err);
	if (r != OUTBOX_OK)
		return r;
	t->links = calloc((size_t)t->n_links, sizeof(*t->links));
	t->message = pn_message();
	return t->links && t->message ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}
