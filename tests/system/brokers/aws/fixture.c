/* SPDX-License-Identifier: Apache-2.0 */
/* sqs:// under the transport contract: a FIFO queue of ElasticMQ's for each case, behind a proxy, read by AWS' own client. */

#include "transport_case.h"
#include "transport_lines.h"
#include "transport_proxied.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct outbox_transport_ops sqs_transport_ops;

#define MESSAGE_BYTES 1000 /* about: one of the suite's messages as a request of its own */

struct place {
	struct proxied link;
	char dir[LINES_DIR_MAX], file[LINES_DIR_MAX + 20];
	int number;
};

static int server_port(void)
{
	return (int)strtol(getenv("ELASTICMQ_PORT"), NULL, 10);
}

static const char *unavailable(void)
{
	return getenv("ELASTICMQ_PORT") ? NULL
					: "no server; run it with tests/support/with-elasticmq";
}

static void *setup(void)
{
	static int number;
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	place->number = ++number;
	lines_dir_make(place->dir);
	snprintf(place->file, sizeof(place->file), "%s/read", place->dir);
	place->link.message_bytes = MESSAGE_BYTES;
	place->link.window = 1; /* the suite's messages have one key */
	place->link.proxy = proxy_start(server_port());
	snprintf(place->link.url, sizeof(place->link.url),
		 "sqs+http://127.0.0.1:%d/000000000000/f%d.fifo", proxy_port(place->link.proxy),
		 place->number);
	/* Port 1 (tcpmux) has no server anywhere that tests run. */
	snprintf(place->link.missing, sizeof(place->link.missing),
		 "sqs+http://127.0.0.1:1/000000000000/orders");
	return place;
}

static void teardown(void *state)
{
	struct place *place = state;

	proxy_stop(place->link.proxy);
	lines_dir_remove(place->dir);
	free(place);
}

static void read_back(void *state, struct arrivals *arrivals)
{
	struct place *place = state;
	char command[600];

	snprintf(command, sizeof(command), "%s %d f%d.fifo %s", getenv("AWS_WITNESS"),
		 server_port(), place->number, place->file);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own */
	lines_read(place->file, arrivals);
}

static const struct bad_url bad_urls[] = {
	{ "sqs:", "host" },
	{ "sqs://", "host" },
	{ "sqs:///1/orders", "host" },
	{ "sqs+http://host:99999/1/orders", "port" },
	{ "sqs://one,two/1/orders", "several hosts" },
	{ "sqs://host/orders", "account" },
	{ "sqs://host/1/", "account" },
	{ "sqs://host/1/a/b", "account" },
	{ "sqs://host/1/orders.fast", "account" },
	{ "sqs://host/1/or%20ders", "account" },
	{ "sqs://host/1.fifo/orders", "account" },
	{ "sqs://host/1/orders?region=a%20b", "region" },
	{ "sqs://host/1/orders?batch=0", "batch" },
	{ "sqs://host/1/orders?batch=11", "batch" },
	{ "sqs://host/1/orders?in_flight=65", "in_flight" },
	{ "sqs://host/1/orders?timeout=soon", "timeout" },
	{ "sqs://host/1/orders?timeout=0", "timeout" },
	{ "sqs://host/1/orders?fifo=yes", "fifo" },
	{ "sqs://AKID@host/1/orders", "password_file" },
	{ "sqs://:secret@host/1/orders", "two parts" },
	{ "sqs://AKID@host/1/orders?password_file=/nowhere", "password_file" },
	{ "sqs+http://host/1/orders?ca=/etc/passwd", "TLS" },
	{ "sqs://host/1/orders?ca=/nowhere", "/nowhere" },
	{ "sqs://host/1/orders?cert=/etc/passwd", "key" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_sqs",
	.ops = &sqs_transport_ops,
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
