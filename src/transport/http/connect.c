/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP has no session, so connecting is a look whether the server can be reached: name, address, TCP and TLS. Nothing is
 * requested: a receiver may act on anything.
 */

#include "transport/http/driver.h"

#include "base/text.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static bool may_connect(void *context, const struct sockaddr *address)
{
	struct http_transport *t = context;
	char host[64] = "?";
	const char *range = guard_range(address);

	if (guard_admits(&t->guard, address))
		return true;
	getnameinfo(address,
		    address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : sizeof(struct sockaddr_in),
		    host, sizeof(host), NULL, 0, NI_NUMERICHOST);
	snprintf(t->refused, sizeof(t->refused),
		 "its address %s is not a public one (%s); to allow it, write allow_private=%s behind "
		 "the URL's #",
		 host, range ? range : "?", host);
	return false;
}

static int open_web(struct http_transport *t, struct outbox_error *err)
{
	const struct endpoint *e = &t->broker.endpoint;
	struct web_settings settings = {
		.clock = t->broker.clock,
		.in_flight = t->batch > 1 ? 1 : (size_t)t->in_flight,
		.timeout = t->timeout,
		.verify = e->verify,
		.ca = e->ca,
		.cert = e->cert,
		.key = e->key,
		.user = e->user,
		.password = e->password,
		.proxy = t->proxy,
		/* behind a proxy it is the proxy that connects */
		.may_connect = t->proxy ? NULL : may_connect,
		.context = t,
	};

	return web_new(&settings, &t->web, err);
}

int http_renew(struct http_transport *t, struct outbox_error *err)
{
	t->web = web_free(t->web);
	return open_web(t, err);
}

int http_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err)
{
	struct http_transport *t = http_downcast(transport);
	char why[CURL_ERROR_SIZE];
	CURLcode failure;
	int r;

	t->refused[0] = '\0';
	r = http_renew(t, err);
	if (r)
		return r;
	failure = web_connect(t->web, t->url, deadline, why);
	if (failure == CURLE_OK)
		return OUTBOX_OK;
	http_disconnect(transport);
	if (t->refused[0])
		return outbox_fail(err, OUTBOX_ECONFIG, "%s: %s", t->broker.shown, t->refused);
	text_clean(why);
	return outbox_fail_native(err, http_failure_status(failure), (int)failure, "%s: %s",
				  t->broker.shown, why);
}

void http_disconnect(struct outbox_transport *transport)
{
	struct http_transport *t = http_downcast(transport);

	t->web = web_free(t->web);
}
