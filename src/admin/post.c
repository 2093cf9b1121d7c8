/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/post.h"

#include "base/text.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 5000L

struct poster {
	CURL *curl;
	const _Atomic bool *stop;
	char text[200];
	size_t size;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;

static void init_library(void)
{
	ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

int poster_new(const _Atomic bool *stop, struct poster **ret_poster, struct outbox_error *err)
{
	struct poster *poster = calloc(1, sizeof(*poster));

	pthread_once(&once, init_library);
	if (poster && ready)
		poster->curl = curl_easy_init();
	if (!poster || !poster->curl) {
		poster_free(poster);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	poster->stop = stop;
	*ret_poster = poster;
	return OUTBOX_OK;
}

struct poster *poster_free(struct poster *poster)
{
	if (!poster)
		return NULL;
	curl_easy_cleanup(poster->curl);
	free(poster);
	return NULL;
}

/* Keeps the beginning; taking no more would end the transfer as an error. */
static size_t take_body(char *data, size_t unit, size_t count, void *context)
{
	struct poster *poster = context;
	size_t size = unit * count, room = sizeof(poster->text) - 1 - poster->size;

	memcpy(poster->text + poster->size, data, size < room ? size : room);
	poster->size += size < room ? size : room;
	return size;
}

static int look_around(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct poster *poster = context;

	(void)a, (void)b, (void)c, (void)d;
	return poster->stop && *poster->stop;
}

static struct curl_slist *make_headers(const struct post *post)
{
	struct curl_slist *list = curl_slist_append(NULL, "Expect:"), *longer;
	char type[200];

	snprintf(type, sizeof(type), "Content-Type: %s", post->content_type);
	longer = list ? curl_slist_append(list, type) : NULL;
	for (size_t i = 0; longer && i < post->n_headers; i++) {
		list = longer;
		longer = curl_slist_append(list, post->headers[i]);
	}
	if (!longer)
		curl_slist_free_all(list);
	return longer;
}

static bool set_up(struct poster *p, const struct post *post, struct curl_slist *headers)
{
	CURL *c = p->curl;
	long ms = (long)(post->timeout / OUTBOX_MILLISECONDS);

	curl_easy_reset(c); /* connections and their TLS sessions stay */
	return !curl_easy_setopt(c, CURLOPT_URL, post->url) &&
	       !curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") &&
	       !curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->size) &&
	       !curl_easy_setopt(c, CURLOPT_POSTFIELDS, post->body) &&
	       !curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers) &&
	       !curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) &&
	       !curl_easy_setopt(c, CURLOPT_NOPROXY, "*") &&
	       !curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) &&
	       !curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) &&
	       !curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
	       !curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, ms > 0 ? ms : 1L) &&
	       !curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, ms < CONNECT_MS ? ms : CONNECT_MS) &&
	       !curl_easy_setopt(c, CURLOPT_USERAGENT, "outbox/" OUTBOX_VERSION) &&
	       !curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body) &&
	       !curl_easy_setopt(c, CURLOPT_WRITEDATA, p) &&
	       !curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look_around) &&
	       !curl_easy_setopt(c, CURLOPT_XFERINFODATA, p) &&
	       !curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
}

static int no_answer(CURLcode code, struct outbox_error *err)
{
	int status = OUTBOX_ECONN;

	if (code == CURLE_OPERATION_TIMEDOUT)
		status = OUTBOX_ETIMEDOUT;
	else if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
		status = OUTBOX_EAUTH;
	else if (code == CURLE_OUT_OF_MEMORY)
		status = OUTBOX_ENOMEM;
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return outbox_fail(err, OUTBOX_ECONN, "given up, the program ends");
	/* not the library's own buffer, which names hosts and paths */
	return outbox_fail(err, status, "%s", curl_easy_strerror(code));
}

static int judge(const struct post_answer *answer, struct outbox_error *err)
{
	int status = OUTBOX_EPROTO;
	char shown[160];

	if (answer->status >= 200 && answer->status < 300)
		return OUTBOX_OK;
	if (answer->status == 401 || answer->status == 403)
		status = OUTBOX_EAUTH;
	else if (answer->status == 429 || answer->status == 503)
		status = OUTBOX_EBUSY;
	if (!answer->text[0])
		return outbox_fail(err, status, "answered %d", answer->status);
	return outbox_fail(err, status, "answered %d: %s", answer->status,
			   text_shown(shown, sizeof(shown), answer->text));
}

int poster_send(struct poster *p, const struct post *post, struct post_answer *ret_answer,
		struct outbox_error *err)
{
	struct curl_slist *headers = make_headers(post);
	struct post_answer answer = { 0 };
	curl_off_t wait = 0;
	CURLcode code = CURLE_OUT_OF_MEMORY;
	long status = 0;

	p->size = 0;
	if (headers && set_up(p, post, headers))
		code = curl_easy_perform(p->curl);
	if (code == CURLE_OK) {
		curl_easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
		curl_easy_getinfo(p->curl, CURLINFO_RETRY_AFTER, &wait);
		answer.status = (int)status;
		answer.retry_after = wait > 0 && wait < 86400 ? wait * OUTBOX_SECONDS : 0;
		memcpy(answer.text, p->text, p->size);
		text_clean(answer.text);
	}
	curl_slist_free_all(headers);
	if (ret_answer)
		*ret_answer = answer;
	return code == CURLE_OK ? judge(&answer, err) : no_answer(code, err);
}
