/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <openssl/evp.h>

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

/* ---- reading: JetStream's API gives headers and body as they are stored, in base64 ------------------ */

static char *decode(const json_t *message, const char *name, size_t *ret_size)
{
	const char *text = json_string_value(json_object_get(message, name));
	size_t length = text ? strlen(text) : 0;
	unsigned char *out = calloc(1, length + 4);
	int n;

	assert_non_null(out);
	n = length ? EVP_DecodeBlock(out, (const unsigned char *)text, (int)length) : 0;
	assert_true(n >= 0);
	for (size_t i = length; i > 0 && text[i - 1] == '='; i--)
		n--;
	out[n] = '\0';
	*ret_size = (size_t)n;
	return (char *)out;
}

/* "NATS/1.0\r\nname: value\r\n...\r\n", taken to pieces in place. */
static void read_headers(char *text, struct place_message *message)
{
	char *at = strstr(text, "\r\n");

	assert_non_null(at);
	for (at += 2; strncmp(at, "\r\n", 2) != 0;) {
		char *colon = strstr(at, ": "), *end = strstr(at, "\r\n");

		assert_true(colon && end && colon < end && message->n_headers < PLACE_HEADERS_MAX);
		*colon = *end = '\0';
		message->names[message->n_headers] = at;
		message->values[message->n_headers++] = colon + 2;
		if (strcmp(at, "Nats-Msg-Id") == 0)
			message->id = colon + 2;
		at = end + 2;
	}
}

static void read_one(struct place *place, uint64_t sequence,
		     void (*arrived)(void *, const struct place_message *), void *context)
{
	struct place_message message = { 0 };
	char subject[80], request[40], *headers, *body;
	natsMsg *msg = NULL;
	json_t *answer;
	size_t size;

	snprintf(subject, sizeof(subject), "$JS.API.STREAM.MSG.GET.%s", place->name);
	snprintf(request, sizeof(request), "{\"seq\":%llu}", (unsigned long long)sequence);
	must(natsConnection_RequestString(&msg, place->nc, subject, request, 5000), "get a message");
	answer = json_loadb(natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg), 0, NULL);
	assert_non_null(json_object_get(answer, "message"));
	headers = decode(json_object_get(answer, "message"), "hdrs", &size);
	body = decode(json_object_get(answer, "message"), "data", &message.size);
	read_headers(headers, &message);
	assert_non_null(message.id);
	message.body = body;
	arrived(context, &message);
	free(headers);
	free(body);
	json_decref(answer);
	natsMsg_Destroy(msg);
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

	for (uint64_t i = 1; i <= last; i++)
		read_one(place, i, arrived, context);
}
