/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis://[user:password@]host:port[,host:port]/[DATABASE]: messages become entries of streams.
 *
 * Several hosts are one place, a primary and those who may become it: the first that is a primary is taken.
 */

#include "transport/redis/driver.h"

#include "base/cleanup.h"

#include <stdlib.h>

extern const struct outbox_transport_ops redis_transport_ops;

#define STREAM_MAX 4096 /* bytes; far more than anybody can read */

static void redis_disconnect(struct outbox_transport *transport)
{
	struct redis_transport *t = container_of(transport, struct redis_transport, base);

	redis_wire_close(&t->wire);
}

static void redis_close(struct outbox_transport *transport)
{
	struct redis_transport *t;

	if (!transport)
		return;
	t = container_of(transport, struct redis_transport, base);
	redis_wire_deinit(&t->wire);
	endpoint_deinit(&t->endpoint);
	template_deinit(&t->stream);
	buf_deinit(&t->key);
	outbox_encoder_free(t->encoder);
	free(t);
}

static int redis_open(const struct outbox_transport_config *config,
		      struct outbox_transport **ret_transport, struct outbox_error *err)
{
	struct redis_transport *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	t->base.ops = &redis_transport_ops;
	t->key = (struct buf)BUF_INIT(STREAM_MAX);
	redis_wire_init(&t->wire, config->clock);
	r = redis_options(t, config, err);
	if (r) {
		redis_close(&t->base);
		return r;
	}
	*ret_transport = &t->base;
	return OUTBOX_OK;
}

static const char *const schemes[] = { "redis", "rediss", NULL };

const struct outbox_transport_ops redis_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "redis",
	.schemes = schemes,
	.help = "redis://[user:password@]host:port/[DATABASE]?stream={type} (Redis Streams; "
		"&maxlen=N to trim, &wait=N for replicas)",
	.open = redis_open,
	.connect = redis_connect,
	.publish = redis_publish,
	.disconnect = redis_disconnect,
	.close = redis_close,
	.check = redis_check,
};
