/* SPDX-License-Identifier: Apache-2.0 */
/* amqp1://, amqp1s:// and servicebus://: AMQP 1.0. */

#include "transport/amqp1/driver.h"

#include <stdlib.h>

extern const struct outbox_transport_ops amqp1_transport_ops;

static void amqp1_disconnect(struct outbox_transport *transport)
{
	amqp1_drop(amqp1_downcast(transport), true);
}

static void amqp1_close(struct outbox_transport *transport)
{
	struct amqp1_transport *t = amqp1_downcast(transport);

	if (t->links)
		amqp1_drop(t, true);
	wire_deinit(&t->wire);
	template_deinit(&t->address);
	if (t->message)
		pn_message_free(t->message);
	free(t->encoded.start);
	free(t->hostname);
	free(t->links);
	free(t->window.slots);
	buf_deinit(&t->text);
	broker_close(&t->broker);
}

static int amqp1_open(const struct outbox_transport_config *config,
		      struct outbox_transport **ret_transport, struct outbox_error *err)
{
	static const struct broker_driver driver = {
		.ops = &amqp1_transport_ops,
		.title = "AMQP",
		.size = sizeof(struct amqp1_transport),
		.attribute_prefix = "cloudEvents:",
		.options = AMQP1_OPTIONS,
		.configure = amqp1_configure,
	};

	return broker_open(&driver, config, ret_transport, err);
}

static const char *const schemes[] = { "amqp1", "amqp1s", "servicebus", NULL };

const struct outbox_transport_ops amqp1_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "amqp1",
	.schemes = schemes,
	.help = "amqp1://[user:password@]HOST[:5672][,HOST...]/ADDRESS (AMQP 1.0; amqp1s:// for TLS; Azure: "
		"servicebus://POLICY@NAMESPACE/QUEUE-OR-TOPIC?password_file=PATH; the address may have {type} {type|kebab} ...; "
		"?auth=plain|external|anonymous|cbs&session=key|correlation|none&links=N)",
	.open = amqp1_open,
	.connect = amqp1_connect,
	.publish = amqp1_publish,
	.disconnect = amqp1_disconnect,
	.close = amqp1_close,
	.check = amqp1_check,
};
