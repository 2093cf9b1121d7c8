/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture sqs|sns: under the transport contract, behind a proxy. sqs: a FIFO queue of ElasticMQ's for each case, read by AWS'
 * own client. sns: a stand-in of ours that writes what it acknowledges, since moto needs seconds for a thousand messages.
 */

#include "transport_case.h"
#include "transport_lines.h"
#include "transport_proxied.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct outbox_transport_ops sqs_transport_ops, sns_transport_ops;

#define MESSAGE_BYTES 1000 /* about: one of the suite's messages as a request of its own */

struct place {
	struct proxied link;
	char dir[LINES_DIR_MAX], file[LINES_DIR_MAX + 20];
	int number;
};

static bool sns;

static const char *server_port(void)
{
	return getenv(sns ? "HTTP_PORT" : "ELASTICMQ_PORT");
}

static const char *unavailable(void)
{
	return server_port() ? NULL
			     : "no server; run it with tests/support/with-elasticmq or with-http";
}

static void *setup(void)
{
	static int number;
	struct place *place = calloc(1, sizeof(*place));

	assert_non_null(place);
	place->number = ++number;
	lines_dir_make(place->dir);
	snprintf(place->file, sizeof(place->file), "%s/read", place->dir);
	if (sns)
		snprintf(place->file, sizeof(place->file), "%s/f%d.fifo", getenv("HTTP_DIR"), number);
	place->link.message_bytes = MESSAGE_BYTES;
	place->link.window = 1; /* the suite's messages have one key */
	place->link.proxy = proxy_start((int)strtol(server_port(), NULL, 10));
	snprintf(place->link.url, sizeof(place->link.url),
		 "%s+http://127.0.0.1:%d/000000000000/f%d.fifo", sns ? "sns" : "sqs",
		 proxy_port(place->link.proxy), number);
	/* Port 1 (tcpmux) has no server anywhere that tests run. */
	snprintf(place->link.missing, sizeof(place->link.missing),
		 "%s+http://127.0.0.1:1/000000000000/orders", sns ? "sns" : "sqs");
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

	snprintf(command, sizeof(command), "%s %s f%d.fifo %s", getenv("AWS_WITNESS"),
		 server_port(), place->number, place->file);
	if (!sns)
		assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): our own */
	lines_read(place->file, arrivals);
}

static const struct bad_url bad_sqs_urls[] = {
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

/* The rest is read by the same code. */
static const struct bad_url bad_sns_urls[] = {
	{ "sns:", "host" },
	{ "sns://one,two/1/orders", "several hosts" },
	{ "sns://host/orders", "account" },
	{ "sns://host/1/orders.fast", "account" },
	{ "sns://host/1/orders?fifo=yes", "fifo" },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	sns = argc > 1 && strcmp(argv[1], "sns") == 0;

	const struct transport_fixture fixture = {
		.name = sns ? "transport_sns" : "transport_sqs",
		.ops = sns ? &sns_transport_ops : &sqs_transport_ops,
		.unavailable = unavailable,
		.setup = setup,
		.teardown = teardown,
		PROXIED_OPS,
		.bad_urls = sns ? bad_sns_urls : bad_sqs_urls,
		.missing_status = OUTBOX_ECONN,
		.read_back = read_back,
	};

	return transport_contract_run(&fixture);
}
