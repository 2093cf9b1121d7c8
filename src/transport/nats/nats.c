/* SPDX-License-Identifier: Apache-2.0 */
/* nats:// and tls://: NATS JetStream. */

#include "transport/nats/driver.h"

#include "base/cleanup.h"
#include "base/secret.h"

#include <stdlib.h>

#define REPLY_MAX 400
#define MSG_ID_MAX 65536 /* more than a server takes in headers */

extern const struct outbox_transport_ops nats_transport_ops;

static struct nats_transport *downcast(struct outbox_transport *transport)
{
	return container_of(transport, struct nats_transport, base);
}

static void nats_disconnect(struct outbox_transport *transport)
{
	nats_wire_close(&downcast(transport)->wire);
}

static void nats_close(struct outbox_transport *transport)
{
	struct nats_transport *t;

	if (!transport)
		return;
	t = downcast(transport);
	nats_wire_deinit(&t->wire);
	outbox_encoder_free(t->encoder);
	endpoint_deinit(&t->endpoint);
	template_deinit(&t->subject);
	free(t->stream);
	free(t->suffix);
	secret_free(t->token);
	free(t->creds);
	free(t->nkey);
	free(t->seed);
	free(t->inbox_prefix);
	free(t->name);
	free(t->window.slots);
	free(t->doubts.list);
	buf_deinit(&t->reply);
	buf_deinit(&t->text);
	buf_deinit(&t->msg_id);
	free(t);
}

static int nats_open(const struct outbox_transport_config *config,
		     struct outbox_transport **ret_transport, struct outbox_error *err)
{
	struct nats_transport *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	t->base.ops = &nats_transport_ops;
	t->clock = config->clock;
	nats_wire_init(&t->wire, config->clock);
	t->number = 1;
	t->reply.max = REPLY_MAX;
	t->text.max = NATS_SUBJECT_MAX;
	t->msg_id.max = MSG_ID_MAX;
	r = nats_options(t, config, err);
	if (r != OUTBOX_OK) {
		nats_close(&t->base);
		return r;
	}
	*ret_transport = &t->base;
	return OUTBOX_OK;
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
