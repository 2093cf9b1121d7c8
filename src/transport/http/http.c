/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http/driver.h"

extern const struct outbox_transport_ops http_transport_ops;

static void http_close(struct outbox_transport *transport)
{
	struct http_transport *t = http_downcast(transport);

	http_disconnect(transport);
	http_options_deinit(t);
	key_order_deinit(&t->order);
	buf_deinit(&t->scratch);
	broker_close(&t->broker);
}

static int http_open(const struct outbox_transport_config *config,
		     struct outbox_transport **ret_transport, struct outbox_error *err)
{
	static const struct broker_driver driver = {
		.ops = &http_transport_ops,
		.title = "http",
		.size = sizeof(struct http_transport),
		.attribute_prefix = "ce-",
		.options = HTTP_OPTIONS,
		.configure = http_configure,
	};

	return broker_open(&driver, config, ret_transport, err);
}

static const char *const schemes[] = { "http", "https", NULL };

const struct outbox_transport_ops http_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "http",
	.schemes = schemes,
	.help = "https://[user:password@]host[:port]/path?query#OPTION=VALUE&... (secret_file, token_file, "
		"header.NAME, in_flight, timeout, batch, allow_private, proxy, ca, cert, key, verify)",
	.open = http_open,
	.connect = http_connect,
	.publish = http_publish,
	.disconnect = http_disconnect,
	.close = http_close,
	.check = http_check,
};
