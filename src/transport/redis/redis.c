/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis://[user:password@]host:port[,host:port]/[DATABASE]: messages become entries of streams.
 *
 * Several hosts are one place, a primary and those who may become it: the first that is a primary is taken.
 */

#include "transport/redis/driver.h"

#include <string.h>

extern const struct outbox_transport_ops redis_transport_ops;

static void redis_disconnect(struct outbox_transport *transport)
{
	redis_wire_close(&redis_downcast(transport)->wire);
}

static void redis_close(struct outbox_transport *transport)
{
	struct redis_transport *t = redis_downcast(transport);

	redis_wire_deinit(&t->wire);
	template_deinit(&t->stream);
	buf_deinit(&t->key);
	buf_deinit(&t->words);
	buf_deinit(&t->streams);
	key_order_deinit(&t->order);
	broker_close(&t->broker);
}

static int redis_open(const struct outbox_transport_config *config,
		      struct outbox_transport **ret_transport, struct outbox_error *err)
{
	static const struct broker_driver driver = {
		.ops = &redis_transport_ops,
		.title = "redis",
		.size = sizeof(struct redis_transport),
		.attribute_prefix = "",
		.options = "stream, maxlen, maxlen_exact, create, wait, password_file",
		.configure = redis_configure,
	};
	char scheme[16];

	if (url_scheme(config->url, scheme, sizeof(scheme)) && strcmp(scheme, "rediss") == 0)
		return outbox_fail(
			err, OUTBOX_ECONFIG,
			"rediss: this build's Redis library has no TLS that verifies the server; "
			"run stunnel (or another local TLS proxy) and write redis://127.0.0.1:PORT/");
	return broker_open(&driver, config, ret_transport, err);
}

static const char *const schemes[] = { "redis", "rediss", NULL };

const struct outbox_transport_ops redis_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "redis",
	.schemes = schemes,
	.help = "redis://[user:password@]host:port/[DATABASE]?stream={type} (Redis Streams; "
		"&maxlen=N to trim, &wait=N for replicas)",
	.flags = OUTBOX_TRANSPORT_KEEPS_ORDER,
	.open = redis_open,
	.connect = redis_connect,
	.publish = redis_publish,
	.disconnect = redis_disconnect,
	.close = redis_close,
	.check = redis_check,
};
