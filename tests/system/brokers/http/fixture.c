/* SPDX-License-Identifier: Apache-2.0 */
/* http:// under the transport contract: a server that records, behind a proxy, a path for each case. */

#include "transport_case.h"
#include "transport_lines.h"
#include "transport_proxied.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct outbox_transport_ops http_transport_ops;

#define MESSAGE_BYTES 363 /* about: one of the suite's messages as a request */

struct place {
	struct proxied link;
	char file[200];
};

static const char *unavailable(void)
{
	return getenv("HTTP_PORT") ? NULL : "no server; run it with tests/support/with-http";
}

static void *setup(void)
{
	static int number;
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	place->link.message_bytes = MESSAGE_BYTES;
	place->link.window = 1; /* the suite's messages have one key */
	place->link.proxy = proxy_start(atoi(getenv("HTTP_PORT")));
	snprintf(place->file, sizeof(place->file), "%s/case-%d", getenv("HTTP_DIR"), ++number);
	snprintf(place->link.url, sizeof(place->link.url),
		 "http://127.0.0.1:%d/case-%d#allow_private=127.0.0.0/8",
		 proxy_port(place->link.proxy), number);
	/* Port 1 (tcpmux) has no server anywhere that tests run. */
	snprintf(place->link.missing, sizeof(place->link.missing),
		 "http://127.0.0.1:1/#allow_private=127.0.0.1");
	return place;
}

static void teardown(void *state)
{
	struct place *place = state;

	proxy_stop(place->link.proxy);
	free(place);
}

static void read_back(void *state, struct arrivals *arrivals)
{
	lines_read(((struct place *)state)->file, arrivals);
}

static const struct bad_url bad_urls[] = {
	{ "http:", "host" },
	{ "http://", "host" },
	{ "https:///hooks", "host" },
	{ "http://127.0.0.1:99999/", "port" },
	{ "http://one,two/", "several hosts" },
	{ "http://127.0.0.1/a b", "%20" },
	{ "http://127.0.0.1/%zz", "%25" },
	{ "http://127.0.0.1/#in_flight", "option" },
	{ "http://127.0.0.1/#in_flight=0", "in_flight" },
	{ "http://127.0.0.1/#in_flight=many", "in_flight" },
	{ "http://127.0.0.1/#timeout=soon", "timeout" },
	{ "http://127.0.0.1/#timeout=0", "timeout" },
	{ "http://127.0.0.1/#batch=0", "batch" },
	{ "http://127.0.0.1/#allow_private=10.0.0.0/33", "10.0.0.0/33" },
	{ "http://127.0.0.1/#allow_private=localhost", "localhost" },
	{ "http://127.0.0.1/#allow_private=10.0.0.0/8,", "allow_private" },
	{ "http://127.0.0.1/#secret=whsec_short", "whsec_" },
	{ "http://127.0.0.1/#secret=plain", "secret" },
	{ "http://127.0.0.1/#secret_file=/nowhere", "/nowhere" },
	{ "http://127.0.0.1/#secret=a&secret_file=b", "one of the two" },
	{ "http://127.0.0.1/#sign=hermodr", "key" },
	{ "http://127.0.0.1/#sign=other&secret=x", "sign" },
	{ "http://127.0.0.1/#token_file=/nowhere", "/nowhere" },
	{ "http://u:p@127.0.0.1/#token=abc", "token" },
	{ "http://127.0.0.1/#token=a%0Ab", "control" },
	{ "http://127.0.0.1/#header.Host=x", "Host" },
	{ "http://127.0.0.1/#header.content-length=5", "content-length" },
	{ "http://127.0.0.1/#header.a%20b=x", "header" },
	{ "http://127.0.0.1/#header.X=a%0D%0AEvil:1", "control" },
	{ "http://127.0.0.1/#idempotency_key=perhaps", "idempotency_key" },
	{ "http://127.0.0.1/#proxy=127.0.0.1", "proxy" },
	{ "http://127.0.0.1/#proxy=http://u:p@127.0.0.1:3128", "proxy_password_file" },
	{ "http://127.0.0.1/#proxy_password_file=x", "proxy" },
	{ "http://127.0.0.1/#ca=/etc/passwd", "TLS" },
	{ "https://127.0.0.1/#ca=/nowhere", "/nowhere" },
	{ "https://127.0.0.1/#cert=/etc/passwd", "key" },
	{ "http://:x@127.0.0.1/#password_file=/nowhere", "password_file" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_http",
	.ops = &http_transport_ops,
	.unavailable = unavailable,
	.setup = setup,
	.teardown = teardown,
	PROXIED_OPS,
	.bad_urls = bad_urls,
	.missing_status = OUTBOX_ECONN,
	.read_back = read_back,
};

int main(void)
{
	return transport_contract_run(&fixture);
}
