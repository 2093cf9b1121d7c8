/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mqtt:// and mqtts://: MQTT 5 (or 3.1.1) by libmosquitto, without its threads and without its reconnecting.
 *
 * publish() hands the library at most as many messages as may be on their way (the broker's Receive Maximum), polls the
 * socket itself, and has the answers as callbacks: PUBACK for QoS 1, PUBREC that refuses or PUBCOMP for QoS 2. ACKED is
 * only what was answered with a reason code below 0x80.
 *
 * The library keeps what it could not send and would send it later. So a client lives as long as its connection: after
 * a deadline, a lost connection and disconnect() it is destroyed with all it holds, and the next one has no session.
 *
 * A client has no thread that keeps it alive while nothing is published. Without keepalive= the broker does not ask for
 * that; else it may end the connection, and the next batch opens a new one before it sends anything.
 */

#include "transport/mqtt/driver.h"

#include <stdlib.h>

extern const struct outbox_transport_ops mqtt_transport_ops;

static void mqtt_close(struct outbox_transport *transport)
{
	struct mqtt_transport *t = mqtt_downcast(transport);

	mqtt_disconnect(transport);
	template_deinit(&t->topic);
	buf_deinit(&t->text);
	free(t->client_id);
	free(t->waiting);
	broker_close(&t->broker);
}

static int mqtt_open(const struct outbox_transport_config *config,
		     struct outbox_transport **ret_transport, struct outbox_error *err)
{
	static const struct broker_driver driver = {
		.ops = &mqtt_transport_ops,
		.title = "mqtt",
		.size = sizeof(struct mqtt_transport),
		.attribute_prefix = "",
		.options = MQTT_OPTIONS,
		.configure = mqtt_configure,
	};

	return broker_open(&driver, config, ret_transport, err);
}

static const char *const schemes[] = { "mqtt", "mqtts", NULL };

const struct outbox_transport_ops mqtt_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "mqtt",
	.schemes = schemes,
	.help = "mqtt://[user:password@]host[:1883][,host...]/TOPIC (MQTT 5; mqtts: TLS; the topic may have {type} {key} "
		"..., default {type}; ?qos=1|2&retain=yes&client_id=NAME&keepalive=SECONDS&version=3.1.1)",
	.open = mqtt_open,
	.connect = mqtt_connect,
	.publish = mqtt_publish,
	.disconnect = mqtt_disconnect,
	.close = mqtt_close,
	.check = mqtt_check,
};
