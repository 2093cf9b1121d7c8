/* SPDX-License-Identifier: Apache-2.0 */
/* nats:// under the transport contract, with a real server behind a proxy. */

#include "transport_case.h"
#include "transport_proxied.h"

#include "place.h"

#include <stdio.h>
#include <stdlib.h>

/* About what one of the suite's messages takes on the wire. */
#define MESSAGE_BYTES 300

extern const struct outbox_transport_ops nats_transport_ops;

struct state {
	struct proxied link;
	struct place *place;
};

static const char *unavailable(void)
{
	return getenv("NATS_PORT") ? NULL : "no server: run it with tests/support/with-nats";
}

static void *setup(void)
{
	struct state *state = calloc(1, sizeof(*state));

	assert_non_null(state);
	state->place = place_new();
	state->link.message_bytes = MESSAGE_BYTES;
	state->link.proxy = proxy_start(place_port());
	snprintf(state->link.url, sizeof(state->link.url), "nats://127.0.0.1:%d/%s.{type}?stream=%s",
		 proxy_port(state->link.proxy), place_name(state->place), place_name(state->place));
	snprintf(state->link.missing, sizeof(state->link.missing),
		 "nats://127.0.0.1:1,127.0.0.1:2/%s.{type}", place_name(state->place));
	return state;
}

static void teardown(void *data)
{
	struct state *state = data;

	proxy_stop(state->link.proxy);
	place_free(state->place);
	free(state);
}

static void arrived(void *context, const struct place_message *message)
{
	struct arrivals *arrivals = context;

	arrivals_add(arrivals, message->id, message->body, message->size);
	for (size_t i = 0; i < message->n_headers; i++)
		arrivals_header(arrivals, message->names[i], message->values[i]);
}

static void read_back(void *data, struct arrivals *arrivals)
{
	place_read(((struct state *)data)->place, arrived, arrivals);
}

static const struct bad_url bad_urls[] = {
	{ "nats:", "host" },
	{ "nats:///x", "host" },
	{ "nats://host:0/x", "port" },
	{ "nats://host/shop.{typ}", "{typ}" },
	{ "nats://host/shop.*", "subject" },
	{ "nats://host/shop.>", "subject" },
	{ "nats://host/shop..x", "subject" },
	{ "nats://host/shop.", "subject" },
	{ "nats://host/my%20shop", "subject" },
	{ "nats://host/x?stream=a.b", "stream" },
	{ "nats://host/x?stream=*", "stream" },
	{ "nats://host/x?inbox=a..b", "inbox" },
	{ "nats://host/x?creds=/nowhere/at/all", "creds" },
	{ "nats://host/x?token_file=/nowhere/at/all", "token_file" },
	{ "nats://host/x?nkey=UABC", "nkey_seed" },
	{ "nats://user@host/x", "password" },
	{ "nats://user:secret@host/x?token_file=/dev/null", "token_file" },
	{ "nats://host/x?ca=/etc/passwd", "TLS" },
	{ "nats://host/x?verify=no", "TLS" },
	{ "tls://host/x?verify=perhaps", "verify" },
	{ "tls://host/x?cert=/dev/null", "key" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_nats",
	.ops = &nats_transport_ops,
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
