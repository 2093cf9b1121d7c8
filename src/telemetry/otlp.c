/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that sends. It takes spans out of the ring a few at a time and keeps those that a collector could not take
 * just now; what comes meanwhile waits in the ring, and when that is full it is dropped and counted. An outage is
 * logged once, and once when it is over.
 */
#include "telemetry/otlp.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/wait.h"
#include "daemon/journal.h"
#include "fields/json_value.h"
#include "telemetry/http_post.h"
#include "telemetry/otlp_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK (500 * OUTBOX_MILLISECONDS)
#define LINGER (5 * OUTBOX_SECONDS) /* a span waits so long for others to go with it */
#define TIMEOUT (10 * OUTBOX_SECONDS)
#define LAST_TIMEOUT (3 * OUTBOX_SECONDS)
#define DELAY_MIN OUTBOX_SECONDS
#define DELAY_MAX OUTBOX_MINUTES
#define URL_MAX_BYTES ((size_t)16 << 10)
#define OTLP_SPANS 256 /* in one request */

struct otlp {
	char *metrics_url, *traces_url;
	char **headers; /* "Name: value", NULL behind the last */
	bool metrics, traces;
	outbox_time interval;
	struct otlp_sender sender;
	struct random_state random;
	struct sampler *sampler;

	struct waiting waiting; /* guards stopping */
	bool stopping;
	_Atomic outbox_time until; /* mono: then no request goes on; OUTBOX_NEVER: not stopping */
	pthread_t thread;
	bool running, can_wait;

	/* the thread's own */
	struct http_post *post;
	struct otlp_batch batches[OTLP_SPANS]; /* taken out, not sent yet */
	size_t n_batches;
	outbox_time spans_at, metrics_at; /* mono: not before */
	outbox_time not_before, delay;    /* after trouble */
	bool away;
	outbox_time away_since;

	struct otlp_ring ring;
};

static _Atomic bool exists;
static _Atomic uint64_t sent, dropped, failures;

bool otlp_look(struct otlp_counts *ret_counts)
{
	*ret_counts = (struct otlp_counts){ .sent = sent, .dropped = dropped, .failures = failures };
	return exists;
}

void otlp_observe(void *context, const char *source, const struct batch_report *report)
{
	struct otlp *o = context;

	if (o->traces && !otlp_ring_put(&o->ring, source, report))
		dropped++;
}

static void report_away(struct otlp *o, const struct outbox_error *err)
{
	outbox_time now = mono_now();
	char wait[DURATION_TEXT_MAX];

	failures++;
	o->delay = o->delay ? o->delay * 2 : DELAY_MIN;
	if (o->delay > DELAY_MAX)
		o->delay = DELAY_MAX;
	o->not_before = now + o->delay;
	if (o->away)
		return;
	o->away = true;
	o->away_since = now;
	journal(EVENT_OTLP_AWAY, NULL,
		"otlp.endpoint: %s; spans wait and are dropped when there are too many, delivery is "
		"not affected; next try in %s, then with pauses of at most 1 min",
		err->message, duration_human(o->delay, wait));
}

static void report_back(struct otlp *o)
{
	char lasted[DURATION_TEXT_MAX];

	o->delay = 0;
	o->not_before = 0;
	if (!o->away)
		return;
	o->away = false;
	journal(EVENT_OTLP_BACK, NULL, "otlp.endpoint answers again after %s",
		duration_human(mono_now() - o->away_since, lasted));
}

static bool ask_stop(void *context)
{
	struct otlp *o = context;

	return mono_now() >= atomic_load(&o->until);
}

/* Takes the body over. */
static int send_body(struct otlp *o, const char *url, json_t *body, outbox_time timeout,
		     struct outbox_error *err)
{
	char *text = body ? json_dumps(body, JSON_STYLE) : NULL;
	int r;

	json_decref(body);
	if (!text)
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	else
		r = http_post_send(o->post,
				   &(struct http_post_request){
					   .url = url,
					   .headers = (const char *const *)o->headers,
					   .body = text,
					   .size = strlen(text),
					   .timeout = timeout,
					   .stop = ask_stop,
					   .context = o },
				   err);
	free(text);
	if (!r)
		report_back(o);
	else if (!ask_stop(o))
		report_away(o, err);
	return r;
}

/* May the same be sent again later? What a collector refuses it refuses again. */
static bool may_repeat(const struct outbox_error *err)
{
	if (err->status == OUTBOX_EPROTO)
		return err->native == 429 || (err->native >= 502 && err->native <= 504);
	return err->status == OUTBOX_ECONN || err->status == OUTBOX_ETIMEDOUT ||
	       err->status == OUTBOX_ENOMEM;
}

static bool send_spans(struct otlp *o, outbox_time timeout)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r;

	while (o->n_batches < OTLP_SPANS && otlp_ring_take(&o->ring, &o->batches[o->n_batches]))
		o->n_batches++;
	if (!o->n_batches)
		return true;
	r = send_body(o, o->traces_url,
		      otlp_spans_json(o->batches, o->n_batches, &o->sender, &o->random.base),
		      timeout, &err);
	if (r && may_repeat(&err))
		return false;
	*(r ? &dropped : &sent) += o->n_batches;
	o->n_batches = 0;
	return !r;
}

static bool send_metrics(struct otlp *o, outbox_time timeout)
{
	_cleanup_(sampler_releasep) const struct sample *sample = sampler_hold(o->sampler);
	struct outbox_error err = OUTBOX_ERROR_INIT;

	return !sample ||
	       !send_body(o, o->metrics_url, otlp_metrics_json(sample, &o->sender), timeout, &err);
}

static void send_what_is_due(struct otlp *o)
{
	outbox_time now = mono_now();
	bool full = otlp_ring_count(&o->ring) >= OTLP_SPANS;

	if (now < o->not_before)
		return;
	if (o->traces && (full || o->n_batches || now >= o->spans_at)) {
		o->spans_at = now + (o->interval < LINGER ? o->interval : LINGER);
		while (send_spans(o, TIMEOUT) && otlp_ring_count(&o->ring) >= OTLP_SPANS)
			if (atomic_load(&o->until) != OUTBOX_NEVER)
				return;
	}
	if (o->metrics && now >= o->metrics_at && now >= o->not_before) {
		o->metrics_at = now + o->interval;
		send_metrics(o, TIMEOUT);
	}
}

/* What is left, if somebody takes it. */
static void send_the_rest(struct otlp *o)
{
	outbox_time until = atomic_load(&o->until), left = until - mono_now();
	bool well = !o->away;

	while (well && o->traces && left > 0 && (o->n_batches || otlp_ring_count(&o->ring))) {
		well = send_spans(o, left);
		left = until - mono_now();
	}
	if (well && o->metrics && left > 0)
		send_metrics(o, left);
}

static void *run(void *context)
{
	struct otlp *o = context;
	bool stopping = false;

	while (!stopping) {
		send_what_is_due(o);
		waiting_lock(&o->waiting);
		if (!o->stopping)
			waiting_wait(&o->waiting, TICK);
		stopping = o->stopping;
		waiting_unlock(&o->waiting);
	}
	send_the_rest(o);
	return NULL;
}

int otlp_start(struct otlp *o, struct sampler *sampler, struct outbox_error *err)
{
	o->sampler = sampler;
	o->metrics_at = mono_now() + o->interval;
	o->running = !pthread_create(&o->thread, NULL, run, o);
	if (!o->running)
		return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
	return OUTBOX_OK;
}

void otlp_stop(struct otlp *o)
{
	if (!o->running)
		return;
	waiting_lock(&o->waiting);
	o->stopping = true;
	atomic_store(&o->until, mono_now() + LAST_TIMEOUT); /* ends a request that is under way */
	waiting_ring(&o->waiting);
	waiting_unlock(&o->waiting);
	pthread_join(o->thread, NULL);
	o->running = false;
}

static char *make_url(const char *endpoint, const char *path)
{
	_cleanup_(buf_deinit) struct buf url = BUF_INIT(URL_MAX_BYTES);
	size_t size = strlen(endpoint);

	while (size > 0 && endpoint[size - 1] == '/')
		size--;
	buf_append(&url, endpoint, size);
	buf_text(&url, path);
	return url.failed ? NULL : strdup(buf_str(&url));
}

/* "Name: value", the value's %41 decoded; what would be a control character stays as it is. */
static char *make_header(const struct otlp_header *h)
{
	char *text = malloc(h->name_size + h->value_size + 3), *out = text;

	if (!text)
		return NULL;
	memcpy(out, h->name, h->name_size);
	out += h->name_size;
	*out++ = ':';
	*out++ = ' ';
	for (size_t i = 0; i < h->value_size; i++) {
		int byte = percent_value(h->value + i, h->value_size - i);

		if (byte >= ' ' && byte != 0x7f) {
			*out++ = (char)byte;
			i += 2;
		} else {
			*out++ = h->value[i];
		}
	}
	*out = '\0';
	return text;
}

static bool copy_headers(struct otlp *o, const char *headers)
{
	struct otlp_header h;
	size_t n = 0;

	for (const char *rest = headers; otlp_header_next(&rest, &h);)
		n++;
	o->headers = calloc(n + 1, sizeof(*o->headers));
	if (!o->headers)
		return false;
	n = 0;
	for (const char *rest = headers; otlp_header_next(&rest, &h);) {
		o->headers[n] = make_header(&h);
		if (!o->headers[n++])
			return false;
	}
	return true;
}

static void name_sender(struct otlp *o, const char *instance)
{
	char host[65] = "host";

	o->sender.started = wall_now();
	if (instance) {
		snprintf(o->sender.instance, sizeof(o->sender.instance), "%s", instance);
		return;
	}
	if (gethostname(host, sizeof(host) - 1))
		snprintf(host, sizeof(host), "host");
	snprintf(o->sender.instance, sizeof(o->sender.instance), "%s:%ld", host, (long)getpid());
}

int otlp_new(const struct config_otlp *config, const char *instance, struct otlp **ret_otlp,
	     struct outbox_error *err)
{
	struct otlp *o = calloc(1, sizeof(*o));
	int r = OUTBOX_OK;

	if (!o)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	o->metrics = config->metrics;
	o->traces = config->traces;
	o->interval = config->interval;
	atomic_init(&o->until, OUTBOX_NEVER);
	random_init(&o->random, random_system_seed());
	otlp_ring_init(&o->ring);
	name_sender(o, instance);
	o->metrics_url = make_url(config->endpoint, "/v1/metrics");
	o->traces_url = make_url(config->endpoint, "/v1/traces");
	if (!o->metrics_url || !o->traces_url ||
	    !copy_headers(o, config->headers ? config->headers : ""))
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!r)
		r = http_post_new(&o->post, err);
	if (!r)
		r = waiting_init(&o->waiting, err);
	o->can_wait = !r;
	if (r) {
		otlp_free(o);
		return r;
	}
	exists = true;
	*ret_otlp = o;
	return OUTBOX_OK;
}

struct otlp *otlp_free(struct otlp *o)
{
	if (!o)
		return NULL;
	otlp_stop(o);
	if (o->can_wait)
		waiting_deinit(&o->waiting);
	http_post_free(o->post);
	for (size_t i = 0; o->headers && o->headers[i]; i++)
		secret_free(o->headers[i]);
	free(o->headers);
	free(o->metrics_url);
	free(o->traces_url);
	free(o);
	return NULL;
}
