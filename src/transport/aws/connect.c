/* SPDX-License-Identifier: Apache-2.0 */
/* There is no session: connecting is to find out who we are, and a look whether the service can be reached. */

#include "transport/aws/driver.h"

#include "base/text.h"

#define ANSWER_MAX ((size_t)64 << 10) /* ten refusals with their reasons */

static int open_web(struct aws_transport *t, struct outbox_error *err)
{
	const struct endpoint *e = &t->broker.endpoint;
	struct web_settings settings = {
		.clock = t->broker.clock,
		.in_flight = (size_t)t->in_flight,
		.timeout = t->timeout,
		.kept = ANSWER_MAX,
		.verify = e->verify,
		.ca = e->ca,
		.cert = e->cert,
		.key = e->key,
	};

	t->web = web_free(t->web);
	return web_new(&settings, &t->web, err);
}

int aws_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err)
{
	struct aws_transport *t = aws_downcast(transport);
	char why[CURL_ERROR_SIZE];
	CURLcode failure;
	int r;

	web_init_library();
	r = aws_credentials_read(t, deadline, err);
	if (!r)
		r = open_web(t, err);
	if (r)
		return r;
	failure = web_connect(t->web, t->url, deadline, why);
	if (failure == CURLE_OK)
		return OUTBOX_OK;
	aws_disconnect(transport);
	text_clean(why);
	return outbox_fail_native(err, aws_failure_status(failure), (int)failure, "%s: %s",
				  t->broker.shown, why);
}

void aws_disconnect(struct outbox_transport *transport)
{
	struct aws_transport *t = aws_downcast(transport);

	t->web = web_free(t->web);
}
