/* SPDX-License-Identifier: Apache-2.0 */
/* amqp1:// under the transport contract, with Apache Artemis behind a proxy. */

#include "transport_case.h"
#include "transport_proxied.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <openssl/evp.h>

extern const struct outbox_transport_ops amqp1_transport_ops;

/* About what one of the suite's messages takes on the wire. */
#define MESSAGE_BYTES 300

struct state {
	struct proxied link;
	char address[60];
};

static int server_port(void)
{
	return (int)strtol(getenv("ARTEMIS_PORT"), NULL, 10);
}

static const char *unavailable(void)
{
	return getenv("ARTEMIS_PORT") ? NULL : "no broker: run it with tests/support/with-artemis";
}

static void *setup(void)
{
	static int number;
	struct state *state = calloc(1, sizeof(*state));

	assert_non_null(state);
	snprintf(state->address, sizeof(state->address), "q%d-%d", (int)getpid(), ++number);
	state->link.message_bytes = MESSAGE_BYTES;
	state->link.window = 1000; /* the credit that Artemis gives */
	state->link.proxy = proxy_start(server_port());
	snprintf(state->link.url, sizeof(state->link.url),
		 "amqp1://relay:relay-secret@127.0.0.1:%d/%s?session=none",
		 proxy_port(state->link.proxy), state->address);
	snprintf(state->link.missing, sizeof(state->link.missing),
		 "amqp1://127.0.0.1:1,127.0.0.1:2/%s", state->address);
	return state;
}

static void teardown(void *data)
{
	struct state *state = data;

	proxy_stop(state->link.proxy);
	free(state);
}

/* ---- what arrived, by Qpid Proton's Python client -------------------------------------------------------- */

static unsigned char *decode(const char *text, size_t *ret_size)
{
	size_t length = strlen(text);
	unsigned char *out = calloc(1, length + 4);
	int n;

	assert_non_null(out);
	n = length ? EVP_DecodeBlock(out, (const unsigned char *)text, (int)length) : 0;
	assert_true(n >= 0);
	for (size_t i = length; i > 0 && text[i - 1] == '='; i--)
		n--;
	*ret_size = (size_t)n;
	return out;
}

static void add_line(struct arrivals *arrivals, const char *line)
{
	json_auto_t *message = json_loads(line, 0, NULL);
	const char *name;
	unsigned char *body;
	json_t *value;
	size_t size;

	assert_non_null(message);
	assert_true(json_is_true(json_object_get(message, "durable")));
	body = decode(json_string_value(json_object_get(message, "body")), &size);
	arrivals_add(arrivals, json_string_value(json_object_get(message, "id")), body, size);
	json_object_foreach(json_object_get(message, "properties"), name, value)
		arrivals_header(arrivals, name, json_string_value(value));
	free(body);
}

static void read_back(void *data, struct arrivals *arrivals)
{
	struct state *state = data;
	char command[600];
	char *line = NULL;
	size_t room = 0;
	FILE *witness;

	snprintf(command, sizeof(command), "%s %d %s", getenv("AMQP1_WITNESS"), server_port(),
		 state->address);
	witness = popen(command, "re");
	assert_non_null(witness);
	while (getline(&line, &room, witness) > 0)
		add_line(arrivals, line);
	free(line);
	assert_int_equal(pclose(witness), 0);
}

static const struct bad_url bad_urls[] = {
	{ "amqp1:", "host" },
	{ "amqp1:///x", "host" },
	{ "amqp1://host:0/x", "port" },
	{ "amqp1://host/", "address" },
	{ "amqp1://host/x?address=y", "address" },
	{ "amqp1://host/{typ}", "{typ}" },
	{ "amqp1://host/{type|camel}", "kebab" },
	{ "amqp1://user@host/x", "password" },
	{ "amqp1://user:secret@host/x?auth=anonymous", "auth=anonymous" },
	{ "amqp1://host/x?auth=plain", "user" },
	{ "amqp1://host/x?auth=external", "certificate" },
	{ "amqp1://user:secret@host/x?auth=cbs", "servicebus" },
	{ "amqp1://host/x?auth=kerberos", "plain, external" },
	{ "amqp1://host/x?session=id", "session" },
	{ "amqp1://host/x?partition=yes", "partition" },
	{ "amqp1://host/x?capability=stream", "capability" },
	{ "amqp1://host/x?links=0", "links" },
	{ "amqp1://host/x?hostname=", "hostname" },
	{ "amqp1://host/x?connect=other:5671", "servicebus" },
	{ "amqp1://host/x?ca=/etc/passwd", "TLS" },
	{ "amqp1://host/x?verify=no", "TLS" },
	{ "amqp1s://host/x?verify=perhaps", "verify" },
	{ "amqp1s://host/x?cert=/dev/null", "key" },
	{ "servicebus://shop/orders", "POLICY" },
	{ "servicebus://policy@shop/orders", "password" },
	{ "servicebus://policy:key@shop,mall/orders", "one namespace" },
	{ "servicebus://policy:key@shop/orders?connect=:5671", "host" },
	{ "servicebus://policy:key@shop/orders?token_ttl=1", "token_ttl" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_amqp1",
	.ops = &amqp1_transport_ops,
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
