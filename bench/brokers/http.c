/* SPDX-License-Identifier: Apache-2.0 */
/* An nginx that answers 204; libcurl's multi interface with as many requests in flight as our driver has. */
#include "../series.h"
#include "plain.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT 8
#define BODY_MAX 4096

struct http {
	CURLM *multi;
	CURL *handles[IN_FLIGHT];
	char bodies[IN_FLIGHT][BODY_MAX];
	struct curl_slist *headers;
};

static size_t drop(char *data, size_t size, size_t count, void *context)
{
	(void)data;
	(void)context;
	return size * count;
}

static void *open_http(const char *url)
{
	struct http *http = calloc(1, sizeof(*http));

	if (!http || curl_global_init(CURL_GLOBAL_DEFAULT))
		die("curl", "out of memory");
	http->multi = curl_multi_init();
	http->headers = curl_slist_append(NULL, "Content-Type: application/cloudevents+json");
	http->headers = curl_slist_append(http->headers, "Expect:");
	for (size_t i = 0; i < IN_FLIGHT; i++) {
		CURL *handle = http->handles[i] = curl_easy_init();

		curl_easy_setopt(handle, CURLOPT_URL, url);
		curl_easy_setopt(handle, CURLOPT_HTTPHEADER, http->headers);
		curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
		curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, drop);
		curl_easy_setopt(handle, CURLOPT_PRIVATE, (void *)i);
	}
	return http;
}

static void make(void *broker)
{
	(void)broker;
}

static void begin(struct http *http, size_t slot, const struct plain_message *m)
{
	CURL *handle = http->handles[slot];
	int n = snprintf(http->bodies[slot], BODY_MAX,
			 "{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"" PLAIN_SOURCE
			 "\",\"type\":\"%s\",\"time\":\"%s\",\"partitionkey\":\"%s\","
			 "\"datacontenttype\":\"" PLAIN_CONTENT_TYPE "\",\"data\":%.*s}",
			 m->id, m->type, m->time, m->key, (int)m->size, m->body);

	if (n < 0 || n >= BODY_MAX)
		die("http", "a message is too large for this bench");
	curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE, (long)n);
	curl_easy_setopt(handle, CURLOPT_POSTFIELDS, http->bodies[slot]);
	curl_multi_add_handle(http->multi, handle);
}

static void publish(void *broker, const struct plain_message *messages, size_t n)
{
	struct http *http = broker;
	size_t begun = 0, done = 0;

	while (begun < n && begun < IN_FLIGHT) {
		begin(http, begun, &messages[begun]);
		begun++;
	}
	while (done < n) {
		CURLMsg *message;
		int running, left;

		curl_multi_perform(http->multi, &running);
		while ((message = curl_multi_info_read(http->multi, &left))) {
			CURL *handle = message->easy_handle;
			void *slot;
			long status = 0;

			curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
			if (message->data.result || status != 204)
				die("POST", curl_easy_strerror(message->data.result));
			curl_easy_getinfo(handle, CURLINFO_PRIVATE, &slot);
			curl_multi_remove_handle(http->multi, handle);
			done++;
			if (begun < n)
				begin(http, (size_t)slot, &messages[begun++]);
		}
		if (done < n && running == (int)(begun - done))
			curl_multi_poll(http->multi, NULL, 0, 1000, NULL);
	}
}

static void close_http(void *broker)
{
	struct http *http = broker;

	for (size_t i = 0; i < IN_FLIGHT; i++)
		curl_easy_cleanup(http->handles[i]);
	curl_multi_cleanup(http->multi);
	curl_slist_free_all(http->headers);
	free(http);
}

/* It keeps nothing, so that nothing can be counted. */
const struct plain_ops plain_http = { .name = "http",
				      .env = "OUTBOX_TEST_HTTP",
				      .options = "#allow_private=127.0.0.1",
				      .open = open_http,
				      .make = make,
				      .publish = publish,
				      .close = close_http };
