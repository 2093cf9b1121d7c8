/* SPDX-License-Identifier: Apache-2.0 */
/* ElasticMQ: SendMessageBatch of ten, by libcurl's multi interface with as many requests in flight as our driver has, and signed by libcurl. */
#include "../series.h"
#include "plain.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT 4
#define BATCH 10
#define BODY_MAX ((size_t)64 << 10)

struct sqs {
	CURLM *multi;
	CURL *handles[IN_FLIGHT];
	char bodies[IN_FLIGHT][BODY_MAX];
	size_t counts[IN_FLIGHT]; /* messages in flight */
	struct curl_slist *headers;
	const char *queue;
};

static size_t drop(char *data, size_t size, size_t count, void *context)
{
	(void)data;
	(void)context;
	return size * count;
}

static CURL *new_handle(struct sqs *sqs, struct curl_slist *headers)
{
	CURL *handle = curl_easy_init();

	curl_easy_setopt(handle, CURLOPT_URL, sqs->queue);
	curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, drop);
	curl_easy_setopt(handle, CURLOPT_AWS_SIGV4, "aws:amz:elasticmq:sqs");
	curl_easy_setopt(handle, CURLOPT_USERPWD, "AKIDEXAMPLE:example");
	return handle;
}

static void *open_sqs(const char *url)
{
	struct sqs *sqs = calloc(1, sizeof(*sqs));

	if (!sqs || curl_global_init(CURL_GLOBAL_DEFAULT))
		die("curl", "out of memory");
	sqs->queue = url + strlen("sqs+");
	sqs->multi = curl_multi_init();
	sqs->headers = curl_slist_append(NULL, "Content-Type: application/x-amz-json-1.0");
	sqs->headers = curl_slist_append(sqs->headers, "X-Amz-Target: AmazonSQS.SendMessageBatch");
	sqs->headers = curl_slist_append(sqs->headers, "Expect:");
	for (size_t i = 0; i < IN_FLIGHT; i++) {
		sqs->handles[i] = new_handle(sqs, sqs->headers);
		curl_easy_setopt(sqs->handles[i], CURLOPT_PRIVATE, (void *)i);
	}
	return sqs;
}

static void make(void *broker)
{
	struct sqs *sqs = broker;
	struct curl_slist *headers =
		curl_slist_append(NULL, "Content-Type: application/x-amz-json-1.0");
	CURL *handle;
	char body[400];

	headers = curl_slist_append(headers, "X-Amz-Target: AmazonSQS.PurgeQueue");
	handle = new_handle(sqs, headers);
	snprintf(body, sizeof(body), "{\"QueueUrl\":\"%s\"}", sqs->queue);
	curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body);
	if (curl_easy_perform(handle))
		die("sqs", "cannot empty the queue");
	curl_easy_cleanup(handle);
	curl_slist_free_all(headers);
}

/* A text as a JSON string. */
static char *put_string(char *out, const char *text)
{
	*out++ = '"';
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			*out++ = '\\';
		*out++ = *text;
	}
	*out++ = '"';
	return out;
}

static char *put_entry(char *out, size_t id, const struct plain_message *m)
{
	char event[2048];
	int n = snprintf(event, sizeof(event),
			 "{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"" PLAIN_SOURCE
			 "\",\"type\":\"%s\",\"time\":\"%s\",\"partitionkey\":\"%s\","
			 "\"datacontenttype\":\"" PLAIN_CONTENT_TYPE "\",\"data\":%.*s}",
			 m->id, m->type, m->time, m->key, (int)m->size, m->body);

	if (n < 0 || n >= (int)sizeof(event))
		die("sqs", "a message is too large for this bench");
	out += sprintf(out, "%s{\"Id\":\"%zu\",\"MessageBody\":", id ? "," : "", id);
	out = put_string(out, event);
	return out + sprintf(out,
			     ",\"MessageAttributes\":{\"content-type\":{\"DataType\":\"String\","
			     "\"StringValue\":\"application/cloudevents+json\"},\"ce-type\":{"
			     "\"DataType\":\"String\",\"StringValue\":\"%s\"}}}",
			     m->type);
}

/* Returns how many went. */
static size_t begin(struct sqs *sqs, size_t slot, const struct plain_message *messages, size_t n)
{
	char *body = sqs->bodies[slot], *out = body;

	n = n < BATCH ? n : BATCH;
	out += sprintf(out, "{\"QueueUrl\":\"%s\",\"Entries\":[", sqs->queue);
	for (size_t i = 0; i < n; i++)
		out = put_entry(out, i, &messages[i]);
	out += sprintf(out, "]}");
	sqs->counts[slot] = n;
	curl_easy_setopt(sqs->handles[slot], CURLOPT_POSTFIELDSIZE, (long)(out - body));
	curl_easy_setopt(sqs->handles[slot], CURLOPT_POSTFIELDS, body);
	curl_multi_add_handle(sqs->multi, sqs->handles[slot]);
	return n;
}

/* Returns the slot that is free now. */
static size_t end(struct sqs *sqs, const CURLMsg *message)
{
	void *slot;
	long status = 0;

	curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
	if (message->data.result || status != 200)
		die("SendMessageBatch", curl_easy_strerror(message->data.result));
	curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
	curl_multi_remove_handle(sqs->multi, message->easy_handle);
	return (size_t)slot;
}

static void publish(void *broker, const struct plain_message *messages, size_t n)
{
	struct sqs *sqs = broker;
	size_t begun = 0, done = 0;

	for (size_t slot = 0; slot < IN_FLIGHT && begun < n; slot++)
		begun += begin(sqs, slot, &messages[begun], n - begun);
	while (done < n) {
		CURLMsg *message;
		int running, left;

		curl_multi_perform(sqs->multi, &running);
		while ((message = curl_multi_info_read(sqs->multi, &left))) {
			size_t slot = end(sqs, message);

			done += sqs->counts[slot];
			if (begun < n)
				begun += begin(sqs, slot, &messages[begun], n - begun);
		}
		if (done < n)
			curl_multi_poll(sqs->multi, NULL, 0, 1000, NULL);
	}
}

static void close_sqs(void *broker)
{
	struct sqs *sqs = broker;

	for (size_t i = 0; i < IN_FLIGHT; i++)
		curl_easy_cleanup(sqs->handles[i]);
	curl_multi_cleanup(sqs->multi);
	curl_slist_free_all(sqs->headers);
	free(sqs);
}

const struct plain_ops plain_elasticmq = { .name = "elasticmq",
					   .env = "OUTBOX_TEST_ELASTICMQ",
					   .options = "",
					   .open = open_sqs,
					   .make = make,
					   .publish = publish,
					   .close = close_sqs };
