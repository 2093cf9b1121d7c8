/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a 2xx is worth is the receiver's secret, and nothing is sent to find out: it might act on it. What can be said is
 * how well the two know each other.
 */

#include "transport/http/driver.h"

#include <stdio.h>
#include <string.h>

static void judge_secrecy(struct findings *f, const struct http_transport *t)
{
	const struct endpoint *e = &t->broker.endpoint;

	if (!e->tls && !endpoint_is_loopback(e))
		findings_add(f, FINDING_WARNING, "messages%s travel in clear text; use https",
			     t->token || e->password ? " and the password or token" : "");
	if (e->tls && !e->verify)
		findings_add(
			f, FINDING_WARNING,
			"verify=no: whoever is in between can read and answer; name its CA with ca");
}

static void tell_query(struct findings *f, const struct http_transport *t)
{
	const char *at = strchr(t->url, '?');
	int size;

	at = at ? http_query_option(at + 1) : NULL;
	if (!at)
		return;
	size = (int)strcspn(at, "=&");
	findings_add(f, FINDING_NOTE,
		     "\"%.*s\" of the query goes to the receiver; if it is meant as an option, write "
		     "it behind a #",
		     size > 40 ? 40 : size, at);
}

int http_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	struct http_transport *t = http_downcast(transport);
	struct findings f = FINDINGS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r = broker_ready(&t->broker, t->web, deadline, &err);

	findings_add(
		&f, FINDING_OK,
		"acknowledged when it answers 2xx: ask its operator whether the message is on disk by then");
	judge_secrecy(&f, t);
	if (!t->signer.n_keys && !t->token && !t->broker.endpoint.password &&
	    !t->broker.endpoint.cert)
		findings_add(
			&f, FINDING_NOTE,
			"not signed: the receiver cannot know who sent it; secret_file names a key");
	if (t->proxy)
		findings_add(
			&f, FINDING_NOTE,
			"through a proxy, which decides where it may go: allow_private does not hold");
	tell_query(&f, t);
	return findings_finish(&f, r, &err, text, size);
}
