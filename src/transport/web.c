/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's multi interface with as many handles as requests may be in flight. A handle keeps its settings; what differs
 * between two requests is the URL, the headers and the body. curl sends a request a second time by itself when a kept
 * connection turns out to be dead before anything was answered, as every HTTP client does.
 */

#include "transport/web.h"

#include "base/cleanup.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY_MAX ((size_t)1 << 30)
#define BODY_KEEP ((size_t)1 << 20) /* one huge message is not remembered for ever */
#define PAUSE_MAX 1000              /* milliseconds; the deadline is looked at this often */

struct slot {
	struct web_request request;
	const char *url; /* that the handle has */
	CURL *handle;
	bool busy;
	bool head_seen;  /* it began to answer */
	bool head_ended; /* the answer's, by an empty line */
	size_t read;
	struct buf answer;
	char why[CURL_ERROR_SIZE];
};

struct web {
	struct web_settings settings;
	CURLM *multi;
	struct slot *slots;
	size_t busy;
};

/* ---- curl's own ----------------------------------------------------------------------------------- */

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

void web_init_library(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_curl);
}

#define SET(option_, value_) r = r ? r : curl_easy_setopt(handle, CURLOPT_##option_, value_)

CURLcode web_set_manners(CURL *handle)
{
	CURLcode r = CURLE_OK;

	SET(PROTOCOLS_STR, "http,https");
	SET(FOLLOWLOCATION, 0L);
	SET(PROXY, "");
	SET(NETRC, (long)CURL_NETRC_IGNORED);
	SET(NOSIGNAL, 1L);
	/* a name server that does not answer is not waited for, at the end above all */
	SET(QUICK_EXIT, 1L);
	SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(USERAGENT, "outbox/" OUTBOX_VERSION);
	return r;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	const struct web_settings *settings = context;

	if (purpose == CURLSOCKTYPE_IPCXN && settings->may_connect &&
	    !settings->may_connect(settings->context, &address->addr)) {
		errno = EACCES;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static CURLcode set_tls(CURL *handle, const struct web_settings *settings)
{
	CURLcode r = CURLE_OK;

	SET(SSL_VERIFYPEER, settings->verify ? 1L : 0L);
	SET(SSL_VERIFYHOST, settings->verify ? 2L : 0L);
	if (settings->ca) {
		SET(CAINFO, settings->ca);
		/* the system's would be trusted, too */
		SET(CAPATH, NULL);
	}
	if (settings->cert) {
		SET(SSLCERT, settings->cert);
		SET(SSLKEY, settings->key);
		/* without one, OpenSSL would ask the terminal */
		SET(KEYPASSWD, "");
	}
	return r;
}

static CURLcode set_login(CURL *handle, const struct web_settings *settings)
{
	CURLcode r = CURLE_OK;

	if (!settings->user && !settings->password)
		return r;
	SET(HTTPAUTH, (long)CURLAUTH_BASIC);
	SET(USERNAME, settings->user ? settings->user : "");
	SET(PASSWORD, settings->password ? settings->password : "");
	return r;
}

static CURLcode set_up(CURL *handle, struct web_settings *settings, char *why)
{
	CURLcode r = web_set_manners(handle);

	r = r ? r : set_tls(handle, settings);
	SET(ERRORBUFFER, why);
	SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	SET(OPENSOCKETFUNCTION, open_socket);
	SET(OPENSOCKETDATA, settings);
	SET(TCP_KEEPALIVE, 1L);
	SET(TCP_NODELAY, 1L);
	if (settings->proxy)
		SET(PROXY, settings->proxy);
	return r ? r : set_login(handle, settings);
}

/* ---- answers ---------------------------------------------------------------------------------------- */

static size_t keep_beginning(char *data, size_t size, size_t count, void *context)
{
	struct slot *slot = context;
	size_t n = size * count, room = slot->answer.max - slot->answer.size;

	buf_append(&slot->answer, data, n < room ? n : room);
	slot->read += n;
	return slot->read <= WEB_READ_MAX ? n : CURL_WRITEFUNC_ERROR;
}

/* A head that ends with the connection is no answer; curl takes it for one. Trailers come here, too, without an end. */
static size_t see_head(char *line, size_t size, size_t count, void *context)
{
	struct slot *slot = context;

	if (size * count >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		slot->head_seen = true;
		slot->head_ended = false;
	} else if (line[0] == '\r' || line[0] == '\n')
		slot->head_ended = true;
	return size * count;
}

const char *web_answer_header(const struct web_answer *answer, const char *name)
{
	struct curl_header *header;

	if (curl_easy_header(answer->handle, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
		return NULL;
	return header->value;
}

/*
 * A server may answer before it has read the request, and end the stream of HTTP/2 then; curl takes that for a failure.
 * Headers come as a whole there, and whether the body did is told by its length alone.
 */
static bool has_all(const struct slot *slot, CURLcode failure, int status)
{
	struct curl_header *length;

	if (failure != CURLE_HTTP2_STREAM)
		return false;
	if (status == 204)
		return true;
	return curl_easy_header(slot->handle, "Content-Length", 0, CURLH_HEADER, -1, &length) ==
		       CURLHE_OK &&
	       strtoull(length->value, NULL, 10) == slot->read;
}

static struct web_answer answer_of(struct slot *slot, CURLcode failure)
{
	struct web_answer answer = { .handle = slot->handle, .failure = failure };
	curl_off_t body = 0;
	long status = 0, head = 0;

	if (slot->head_seen) /* if not, curl may tell the status of the request before */
		curl_easy_getinfo(slot->handle, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(slot->handle, CURLINFO_REQUEST_SIZE, &head);
	curl_easy_getinfo(slot->handle, CURLINFO_SIZE_UPLOAD_T, &body);
	answer.status = (int)status;
	answer.sent = head > 0 || body > 0 || status > 0;
	/* We have not listened to the end, but it began to answer. */
	if (failure == CURLE_WRITE_ERROR && slot->read > WEB_READ_MAX)
		answer.failure = CURLE_OK;
	if (failure == CURLE_OK && !slot->head_ended)
		failure = answer.failure = CURLE_PARTIAL_FILE;
	answer.whole = answer.failure == CURLE_OK || has_all(slot, failure, answer.status);
	answer.body = buf_str(&slot->answer);
	answer.size = slot->answer.size;
	answer.why = slot->why[0] ? slot->why : curl_easy_strerror(failure);
	return answer;
}

/* ---- requests --------------------------------------------------------------------------------------- */

static void add_line(struct web_request *request, const char *line)
{
	struct curl_slist *list = line ? curl_slist_append(request->headers, line) : NULL;

	if (list)
		request->headers = list;
	else
		request->failed = true;
}

void web_header(struct web_request *request, const char *name, const char *value)
{
	char line[512], *longer = NULL;
	/* "Name;" is how curl is told of a header without a value */
	int n = snprintf(line, sizeof(line), *value ? "%s: %s" : "%s;", name, value);

	if (n < (int)sizeof(line)) {
		add_line(request, line);
		return;
	}
	if (asprintf(&longer, "%s: %s", name, value) < 0)
		longer = NULL;
	add_line(request, longer);
	free(longer);
}

void web_headers_end(struct web_request *request)
{
	/* none: curl would wait for a "100 Continue" before a large body */
	add_line(request, "Expect:");
}

static void empty_request(struct web_request *request)
{
	curl_slist_free_all(request->headers);
	request->headers = request->fixed = NULL;
	if (request->buffer.capacity > BODY_KEEP)
		buf_deinit(&request->buffer);
	buf_clear(&request->buffer);
	request->body = NULL;
	request->size = 0;
	request->failed = false;
}

static outbox_time left_until(const struct web *web, outbox_time deadline)
{
	return deadline - web->settings.clock->mono(web->settings.clock);
}

/* In curl's milliseconds, at least one: 0 means for ever. */
static long milliseconds(outbox_time time)
{
	return time > OUTBOX_MILLISECONDS ? (long)(time / OUTBOX_MILLISECONDS) : 1L;
}

static CURLcode set_request(struct slot *slot, outbox_time timeout)
{
	struct web_request *request = &slot->request;
	CURL *handle = slot->handle;
	CURLcode r = CURLE_OK;

	if (slot->url != request->url) {
		SET(URL, request->url);
		/* rather wait for a stream of HTTP/2 than open another connection; without TLS there is none */
		SET(PIPEWAIT, strncmp(request->url, "https:", 6) == 0 ? 1L : 0L);
	}
	slot->url = request->url;
	SET(HTTPHEADER, request->fixed ? request->fixed : request->headers);
	SET(POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
	SET(POSTFIELDS, request->body ? request->body : "");
	SET(TIMEOUT_MS, milliseconds(timeout));
	return r;
}

static int send_request(struct web *web, struct slot *slot, outbox_time deadline,
			struct outbox_error *err)
{
	struct web_request *request = &slot->request;
	outbox_time left = left_until(web, deadline), timeout = web->settings.timeout;
	CURLcode r;

	if (!timeout || timeout > left)
		timeout = left;
	if (!request->fixed)
		web_headers_end(request);
	buf_clear(&slot->answer);
	slot->head_seen = slot->head_ended = false;
	slot->read = 0;
	slot->why[0] = '\0';
	r = set_request(slot, timeout);
	if (r || request->failed || request->buffer.failed ||
	    curl_multi_add_handle(web->multi, slot->handle))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	slot->busy = true;
	web->busy++;
	return OUTBOX_OK;
}

static void end_request(struct web *web, struct slot *slot, const struct web_sender *sender,
			CURLcode failure)
{
	struct web_answer answer = answer_of(slot, failure);

	sender->done(sender->context, &slot->request, &answer);
	/* Not done yet, its connection is closed, or its stream of HTTP/2 is reset. */
	curl_multi_remove_handle(web->multi, slot->handle);
	slot->busy = false;
	web->busy--;
	empty_request(&slot->request);
}

/* ---- the run ---------------------------------------------------------------------------------------- */

static int send_more(struct web *web, const struct web_sender *sender, outbox_time deadline,
		     struct outbox_error *err)
{
	for (size_t i = 0; i < web->settings.in_flight && web->busy < web->settings.in_flight; i++) {
		struct slot *slot = &web->slots[i];
		int r;

		if (slot->busy)
			continue;
		if (left_until(web, deadline) <= 0 ||
		    !sender->next(sender->context, &slot->request)) {
			empty_request(&slot->request);
			return OUTBOX_OK;
		}
		r = send_request(web, slot, deadline, err);
		if (r) {
			empty_request(&slot->request);
			return r;
		}
	}
	return OUTBOX_OK;
}

static struct slot *slot_of(CURL *handle)
{
	struct slot *slot = NULL;

	curl_easy_getinfo(handle, CURLINFO_PRIVATE, &slot);
	return slot;
}

static void take_answers(struct web *web, const struct web_sender *sender)
{
	CURLMsg *message;
	int more;

	while ((message = curl_multi_info_read(web->multi, &more)))
		if (message->msg == CURLMSG_DONE)
			end_request(web, slot_of(message->easy_handle), sender, message->data.result);
}

static void drop_all(struct web *web, const struct web_sender *sender, CURLcode failure)
{
	for (size_t i = 0; i < web->settings.in_flight; i++)
		if (web->slots[i].busy)
			end_request(web, &web->slots[i], sender, failure);
}

/* Pass the time until something can be read or written, or curl has a timer. */
static int perform(struct web *web, outbox_time deadline, struct outbox_error *err)
{
	outbox_time left = left_until(web, deadline);
	long pause = left > 0 ? milliseconds(left) : 0;
	int running = 0;

	if (curl_multi_perform(web->multi, &running) != CURLM_OK)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (running == (int)web->busy &&
	    curl_multi_poll(web->multi, NULL, 0, pause < PAUSE_MAX ? (int)pause : PAUSE_MAX, NULL))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

int web_run(struct web *web, const struct web_sender *sender, outbox_time deadline,
	    struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (;;) {
		r = send_more(web, sender, deadline, err);
		if (r || !web->busy)
			break;
		r = perform(web, deadline, err);
		if (r)
			break;
		take_answers(web, sender);
		if (left_until(web, deadline) <= 0)
			break;
	}
	drop_all(web, sender, CURLE_OPERATION_TIMEDOUT);
	return r;
}

CURLcode web_connect(struct web *web, const char *url, outbox_time deadline, char *ret_why)
{
	CURL *handle = curl_easy_init();
	outbox_time left = left_until(web, deadline);
	CURLcode r = handle ? set_up(handle, &web->settings, ret_why) : CURLE_OUT_OF_MEMORY;

	ret_why[0] = '\0';
	SET(URL, url);
	SET(CONNECT_ONLY, 1L);
	SET(TIMEOUT_MS, milliseconds(left));
	SET(CONNECTTIMEOUT_MS, milliseconds(left));
	r = r ? r : left > 0 ? curl_easy_perform(handle) : CURLE_OPERATION_TIMEDOUT;
	if (r && !ret_why[0])
		snprintf(ret_why, CURL_ERROR_SIZE, "%s", curl_easy_strerror(r));
	curl_easy_cleanup(handle);
	return r;
}

/* ---- its life --------------------------------------------------------------------------------------- */

static bool make_slot(struct web *web, struct slot *slot)
{
	CURL *handle = curl_easy_init();
	CURLcode r = handle ? set_up(handle, &web->settings, slot->why) : CURLE_OUT_OF_MEMORY;

	slot->handle = handle;
	slot->request.buffer = (struct buf)BUF_INIT(BODY_MAX);
	slot->answer.max = web->settings.kept ? web->settings.kept : WEB_KEPT_MAX;
	SET(PRIVATE, slot);
	SET(POST, 1L);
	SET(WRITEFUNCTION, keep_beginning);
	SET(WRITEDATA, slot);
	SET(HEADERFUNCTION, see_head);
	SET(HEADERDATA, slot);
	return r == CURLE_OK;
}

int web_new(const struct web_settings *settings, struct web **ret_web, struct outbox_error *err)
{
	struct web *web = calloc(1, sizeof(*web));
	bool whole;

	web_init_library();
	if (!web)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	web->settings = *settings;
	web->multi = curl_multi_init();
	web->slots = calloc(settings->in_flight, sizeof(*web->slots));
	whole = web->multi && web->slots;
	for (size_t i = 0; whole && i < settings->in_flight; i++)
		whole = make_slot(web, &web->slots[i]);
	whole = whole &&
		!curl_multi_setopt(web->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
				   (long)settings->in_flight) &&
		!curl_multi_setopt(web->multi, CURLMOPT_MAXCONNECTS, (long)settings->in_flight);
	if (!whole) {
		web_free(web);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	*ret_web = web;
	return OUTBOX_OK;
}

struct web *web_free(struct web *web)
{
	if (!web)
		return NULL;
	for (size_t i = 0; web->slots && i < web->settings.in_flight; i++) {
		struct slot *slot = &web->slots[i];

		if (slot->busy)
			curl_multi_remove_handle(web->multi, slot->handle);
		curl_easy_cleanup(slot->handle);
		empty_request(&slot->request);
		buf_deinit(&slot->request.buffer);
		buf_deinit(&slot->answer);
	}
	free(web->slots);
	curl_multi_cleanup(web->multi);
	free(web);
	return NULL;
}
