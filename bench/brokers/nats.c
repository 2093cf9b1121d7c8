/* SPDX-License-Identifier: Apache-2.0 */
#include "../series.h"
#include "plain.h"

#include <nats/nats.h>
#include <stdlib.h>

struct nats {
	natsConnection *connection;
	jsCtx *js;
};

static void check(natsStatus status, const char *what)
{
	if (status != NATS_OK)
		die(what, natsStatus_GetText(status));
}

static void *open_nats(const char *url)
{
	struct nats *n = calloc(1, sizeof(*n));
	jsStreamConfig config;
	const char *subjects[] = { "bench" };
	jsOptions options;

	check(natsConnection_ConnectTo(&n->connection, url), "nats");
	check(jsOptions_Init(&options), "nats");
	options.PublishAsync.MaxPending = 100000;
	check(natsConnection_JetStream(&n->js, n->connection, &options), "jetstream");
	check(jsStreamConfig_Init(&config), "stream");
	config.Name = "BENCH";
	config.Subjects = subjects;
	config.SubjectsLen = 1;
	check(js_AddStream(NULL, n->js, &config, NULL, NULL), "stream");
	check(js_PurgeStream(n->js, "BENCH", NULL, NULL), "purge");
	return n;
}

static void publish(void *broker, const struct plain_message *messages, size_t count)
{
	struct nats *n = broker;
	jsPubOptions options;

	for (size_t i = 0; i < count; i++) {
		const struct plain_message *m = &messages[i];
		natsMsg *message;

		check(natsMsg_Create(&message, "bench", NULL, m->body, (int)m->size), "message");
		natsMsgHeader_Set(message, "Nats-Msg-Id", m->id);
		natsMsgHeader_Set(message, "ce-specversion", "1.0");
		natsMsgHeader_Set(message, "ce-id", m->id);
		natsMsgHeader_Set(message, "ce-source", PLAIN_SOURCE);
		natsMsgHeader_Set(message, "ce-type", m->type);
		natsMsgHeader_Set(message, "ce-time", m->time);
		natsMsgHeader_Set(message, "ce-partitionkey", m->key);
		natsMsgHeader_Set(message, "content-type", PLAIN_CONTENT_TYPE);
		check(js_PublishMsgAsync(n->js, &message, NULL), "publish");
	}
	check(jsPubOptions_Init(&options), "publish");
	options.MaxWait = 60000;
	check(js_PublishAsyncComplete(n->js, &options), "acknowledgements");
}

static void close_nats(void *broker)
{
	struct nats *n = broker;

	jsCtx_Destroy(n->js);
	natsConnection_Destroy(n->connection);
	free(n);
}

const struct plain_ops plain_nats = { .name = "nats",
				      .env = "OUTBOX_TEST_NATS",
				      .options = "/bench",
				      .open = open_nats,
				      .publish = publish,
				      .close = close_nats };
