/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
	natsConnection *nc;
	jsCtx *js;
	char name[40], subject[48];
};

static void must(natsStatus s, const char *what)
{
	if (s != NATS_OK)
		fail_msg("%s: %s: %s", what, natsStatus_GetText(s), nats_GetLastError(NULL));
}

int place_port(void)
{
	const char *port = getenv("NATS_PORT");

	assert_non_null(port);
	return (int)strtol(port, NULL, 10);
}

const char *place_name(const struct place *place)
{
	return place->name;
}

struct place *place_new_with(void (*change)(jsStreamConfig *config))
{
	static int number;
	struct place *place = calloc(1, sizeof(*place));
	const char *subjects[1];
	jsStreamConfig config;
	char url[60];

	assert_non_null(place);
	snprintf(url, sizeof(url), "nats://127.0.0.1:%d", place_port());
	snprintf(place->name, sizeof(place->name), "S%d_%d", (int)getpid(), ++number);
	snprintf(place->subject, sizeof(place->subject), "%s.>", place->name);
	must(natsConnection_ConnectTo(&place->nc, url), "connect");
	must(natsConnection_JetStream(&place->js, place->nc, NULL), "JetStream");
	jsStreamConfig_Init(&config);
	config.Name = place->name;
	subjects[0] = place->subject;
	config.Subjects = subjects;
	config.SubjectsLen = 1;
	config.Storage = js_MemoryStorage;
	if (change)
		change(&config);
	must(js_AddStream(NULL, place->js, &config, NULL, NULL), "create a stream");
	return place;
}

struct place *place_new(void)
{
	return place_new_with(NULL);
}

void place_free(struct place *place)
{
	must(js_DeleteStream(place->js, place->name, NULL, NULL), "delete the stream");
	jsCtx_Destroy(place->js);
	natsConnection_Destroy(place->nc);
	free(place);
}

static void read_one(natsMsg *msg, void (*arrived)(void *, const struct place_message *),
		     void *context)
{
	struct place_message message = { .body = natsMsg_GetData(msg),
					 .size = (size_t)natsMsg_GetDataLength(msg) };
	const char **names = NULL;
	int count = 0;

	must(natsMsgHeader_Get(msg, "Nats-Msg-Id", &message.id), "Nats-Msg-Id");
	must(natsMsgHeader_Keys(msg, &names, &count), "headers");
	assert_true(count <= PLACE_HEADERS_MAX);
	for (int i = 0; i < count; i++) {
		message.names[i] = names[i];
		must(natsMsgHeader_Get(msg, names[i], &message.values[i]), names[i]);
	}
	message.n_headers = (size_t)count;
	arrived(context, &message);
	free((void *)names);
}

static uint64_t last_sequence(struct place *place)
{
	jsStreamInfo *info = NULL;
	uint64_t last;

	must(js_GetStreamInfo(&info, place->js, place->name, NULL, NULL), "stream info");
	last = info->State.LastSeq;
	jsStreamInfo_Destroy(info);
	return last;
}

size_t place_count(struct place *place)
{
	return (size_t)last_sequence(place);
}

void place_read(struct place *place, void (*arrived)(void *, const struct place_message *),
		void *context)
{
	uint64_t last = last_sequence(place);

	for (uint64_t i = 1; i <= last; i++) {
		natsMsg *msg = NULL;

		must(js_GetMsg(&msg, place->js, place->name, i, NULL, NULL), "get a message");
		read_one(msg, arrived, context);
		natsMsg_Destroy(msg);
	}
}
