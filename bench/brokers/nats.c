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
	jsOptions options;

	check(natsConnection_ConnectTo(&n->connection, url), "nats");
	check(jsOptions_Init(&options), "nats");
	options.PublishAsync.MaxPending = 100000;
	check(natsConnection_JetStream(&n->js, n->connection, &options), "jetstream");
	return n;
}

/* A new stream has seen no ids; a purge would leave it those of the last two minutes, which are less work. */
static void make(void *broker)
{
	struct nats *n = broker;
	const char *subjects[] = { "bench" };
	jsStreamConfig config;
	natsStatus status = js_DeleteStream(n->js, "BENCH", NULL, NULL);

	if (status != NATS_NOT_FOUND)
		check(status, "delete stream");
	check(jsStreamConfig_Init(&config), "stream");
	config.Name = "BENCH";
	config.Subjects = subjects;
	config.SubjectsLen = 1;
	check(js_AddStream(NULL, n->js, &config, NULL, NULL), "stream");
}

static long count(void *broker)
{
	struct nats *n = broker;
	jsStreamInfo *info = NULL;
	long messages;

	check(js_GetStreamInfo(&info, n->js, "BENCH", NULL, NULL), "stream");
	messages = (long)info->State.Msgs;
	jsStreamInfo_Destroy(info);
	return messages;
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
				      .make = make,
				      .count = count,
				      .publish = publish,
				      .close = close_nats };
