/* SPDX-License-Identifier: Apache-2.0 */
/* nats:// and tls://: NATS JetStream. */

#include "transport/nats/driver.h"

#include "base/secret.h"

#include <stdlib.h>

extern const struct outbox_transport_ops nats_transport_ops;

static void nats_disconnect(struct outbox_transport *transport)
{
	wire_close(&nats_downcast(transport)->wire);
}

static void nats_close(struct outbox_transport *transport)
{
	struct nats_transport *t = nats_downcast(transport);

	wire_deinit(&t->wire);
	template_deinit(&t->subject);
	free(t->stream);
	free(t->suffix);
	secret_free(t->token);
	free(t->creds);
	free(t->nkey);
	free(t->seed);
	free(t->inbox_prefix);
	free(t->window.slots);
	free(t->doubts.list);
	buf_deinit(&t->reply);
	buf_deinit(&t->text);
	buf_deinit(&t->msg_id);
	broker_close(&t->broker);
}

static int nats_open(const struct outbox_transport_config *config,
		     struct outbox_transport **ret_transport, struct outbox_error *err)
{
	static const struct broker_driver driver = {
		.ops = &nats_transport_ops,
		.title = "NATS",
		.size = sizeof(struct nats_transport),
		.attribute_prefix = "ce-",
		.options =
			"stream, msg_id, token_file, creds, nkey, nkey_seed, inbox, " ENDPOINT_OPTIONS,
		.configure = nats_configure,
	};

	return broker_open(&driver, config, ret_transport, err);
}

static const char *const schemes[] = { "nats", "tls", NULL };

const struct outbox_transport_ops nats_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "nats",
	.schemes = schemes,
	.help = "nats://[user:password@]HOST[:4222][,HOST...]/SUBJECT (JetStream; tls:// for TLS; the subject "
		"may have {type} {key} ..., default {type}; ?stream=NAME&msg_id=id|target&token_file=&creds=&nkey=&nkey_seed=)",
	.open = nats_open,
	.connect = nats_connect,
	.publish = nats_publish,
	.disconnect = nats_disconnect,
	.close = nats_close,
	.check = nats_check,
};
