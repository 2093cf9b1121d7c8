/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nats_probe URL [COUNT [CONNECT_SECONDS [PUBLISH_SECONDS]]]: connect, publish COUNT messages, and print one line
 * each: "connect STATUS text", "publish STATUS acked N rejected N retry N unknown N unset N text". For the tests
 * that play with servers.
 */

#include "batch.h"

#include <stdio.h>
#include <stdlib.h>

static int number(int argc, char **argv, int i, int normal)
{
	return argc > i ? (int)strtol(argv[i], NULL, 10) : normal;
}

static void publish(struct outbox_transport *transport, int count, int seconds)
{
	struct batch *b = batch_new();
	const char *reason = "";
	int r;

	batch_add_many(b, "probe", (size_t)count);
	r = batch_publish(b, transport, seconds);
	for (size_t i = 0; i < b->batch.count && !reason[0]; i++)
		if (b->items[i].reason)
			reason = b->items[i].reason;
	printf("publish %s acked %zu rejected %zu retry %zu unknown %zu unset %zu %s; %s\n",
	       outbox_status_name(r), batch_count(b, OUTBOX_ACKED), batch_count(b, OUTBOX_REJECTED),
	       batch_count(b, OUTBOX_RETRY), batch_count(b, OUTBOX_UNKNOWN),
	       batch_count(b, OUTBOX_VERDICT_UNSET), b->err.message, reason);
	batch_free(b);
}

int main(int argc, char **argv)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_transport *transport = NULL;
	struct outbox_transport_config config = { .struct_size = sizeof(config),
						  .clock = outbox_clock_system(),
						  .target = "a \"target\"",
						  .url = argc > 1 ? argv[1] : "" };
	int r = nats_transport_ops.open(&config, &transport, &err);

	if (r) {
		printf("open %s %s\n", outbox_status_name(r), err.message);
		return 1;
	}
	r = transport->ops->connect(transport, in_seconds(number(argc, argv, 3, 5)), &err);
	printf("connect %s %s\n", outbox_status_name(r), err.message);
	fflush(stdout);
	if (!r)
		publish(transport, number(argc, argv, 2, 1), number(argc, argv, 4, 5));
	transport->ops->close(transport);
	return r ? 1 : 0;
}
