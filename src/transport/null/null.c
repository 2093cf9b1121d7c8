/* SPDX-License-Identifier: Apache-2.0 */
/* null: acknowledges everything and keeps nothing. For benchmarks: what is left is the engine. */

#include "base/cleanup.h"
#include "base/url.h"
#include "transport/transport.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

extern const struct outbox_transport_ops null_transport_ops;

struct null_transport {
	struct outbox_transport base;
	bool connected;
};

static struct null_transport *downcast(struct outbox_transport *transport)
{
	return container_of(transport, struct null_transport, base);
}

static int null_open(const struct outbox_transport_config *config,
		     struct outbox_transport **ret_transport, struct outbox_error *err)
{
	struct null_transport *null;
	int r = url_check_bare(config->url, err);

	if (r)
		return r;
	null = calloc(1, sizeof(*null));
	if (!null)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	null->base.ops = &null_transport_ops;
	*ret_transport = &null->base;
	return OUTBOX_OK;
}

static int null_connect(struct outbox_transport *transport, outbox_time deadline,
			struct outbox_error *err)
{
	(void)deadline;
	(void)err;
	downcast(transport)->connected = true;
	return OUTBOX_OK;
}

static int null_publish(struct outbox_transport *transport, struct outbox_batch *batch,
			outbox_time deadline, struct outbox_error *err)
{
	(void)deadline;
	if (!downcast(transport)->connected)
		return outbox_fail(err, OUTBOX_ECONN, "null: not connected");
	for (size_t i = 0; i < batch->count; i++)
		outbox_batch_verdict(batch, i, OUTBOX_ACKED, 0, NULL);
	return OUTBOX_OK;
}

static void null_disconnect(struct outbox_transport *transport)
{
	downcast(transport)->connected = false;
}

static void null_close(struct outbox_transport *transport)
{
	free(downcast(transport));
}

static int null_check(struct outbox_transport *transport, outbox_time deadline, char *text,
		      size_t size)
{
	(void)transport;
	(void)deadline;
	snprintf(text, size, "acknowledges every message and drops it; for benchmarks only");
	return 2;
}

static const char *const schemes[] = { "null", NULL };

const struct outbox_transport_ops null_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "null",
	.schemes = schemes,
	.help = "null: (acknowledges everything, keeps nothing)",
	.flags = OUTBOX_TRANSPORT_KEEPS_ORDER, /* it never fails */
	.open = null_open,
	.connect = null_connect,
	.publish = null_publish,
	.disconnect = null_disconnect,
	.close = null_close,
	.check = null_check,
};
