/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/http_post.h"

#include "base/cleanup.h"
#include "transport/web.h"

#include <curl/curl.h>
#include <stdlib.h>

#define ANSWER_MAX ((size_t)64 << 10)

struct http_post {
	CURL *curl;
	size_t answered; /* bytes */
};

int http_post_new(struct http_post **ret_post, struct outbox_error *err)
{
	struct http_post *post = calloc(1, sizeof(*post));

	web_init_library();
	if (post)
		post->curl = curl_easy_init();
	if (!post || !post->curl) {
		free(post);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	*ret_post = post;
	return OUTBOX_OK;
}

struct http_post *http_post_free(struct http_post *post)
{
	if (post)
		curl_easy_cleanup(post->curl);
	free(post);
	return NULL;
}

static size_t throw_away(char *data, size_t size, size_t count, void *context)
{
	struct http_post *post = context;

	(void)data;
	post->answered += size * count;
	return post->answered <= ANSWER_MAX ? size * count : 0;
}

static int ask_stop(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct http_post_request *request = context;

	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return request->stop && request->stop(request->context);
}

static void free_list(struct curl_slist **list)
{
	curl_slist_free_all(*list);
}

static bool add_header(struct curl_slist **list, const char *header)
{
	struct curl_slist *longer = curl_slist_append(*list, header);

	if (longer)
		*list = longer;
	return longer != NULL;
}

#define SET(option_, value_) r = r ? r : curl_easy_setopt(c, CURLOPT_##option_, value_)

static CURLcode set_up(struct http_post *post, const struct http_post_request *request,
		       struct curl_slist *headers)
{
	CURL *c = post->curl;
	long timeout = (long)(request->timeout / OUTBOX_MILLISECONDS);
	CURLcode r;

	curl_easy_reset(c);
	r = web_set_manners(c);
	SET(NOPROGRESS, 0L);
	SET(URL, request->url);
	SET(CONNECTTIMEOUT_MS, timeout > 0 ? timeout : 1L);
	SET(TIMEOUT_MS, timeout > 0 ? timeout : 1L);
	SET(HTTPHEADER, headers);
	SET(POSTFIELDS, request->body);
	SET(POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
	SET(WRITEFUNCTION, throw_away);
	SET(WRITEDATA, post);
	SET(XFERINFOFUNCTION, ask_stop);
	SET(XFERINFODATA, (void *)request);
	return r;
}

int http_post_send(struct http_post *post, const struct http_post_request *request,
		   struct outbox_error *err)
{
	_cleanup_(free_list) struct curl_slist *headers = NULL;
	bool whole = add_header(&headers, "Content-Type: application/json") &&
		     add_header(&headers, "Expect:");
	long status = 0;
	CURLcode r;

	for (size_t i = 0; whole && request->headers && request->headers[i]; i++)
		whole = add_header(&headers, request->headers[i]);
	if (!whole || set_up(post, request, headers) != CURLE_OK)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	post->answered = 0;
	r = curl_easy_perform(post->curl);
	/* its own words name hosts, never what stands behind them */
	if (r != CURLE_OK)
		return outbox_fail_native(err,
					  r == CURLE_OPERATION_TIMEDOUT ? OUTBOX_ETIMEDOUT
									: OUTBOX_ECONN,
					  (int)r, "%s", curl_easy_strerror(r));
	curl_easy_getinfo(post->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 300 && status < 400)
		return outbox_fail(err, OUTBOX_EPROTO,
				   "it answered %ld; redirects are not followed: give the last URL",
				   status);
	if (status < 200 || status >= 300)
		return outbox_fail_native(err,
					  status == 401 || status == 403 ? OUTBOX_EAUTH
									 : OUTBOX_EPROTO,
					  (int)status, "it answered %ld", status);
	return OUTBOX_OK;
}
