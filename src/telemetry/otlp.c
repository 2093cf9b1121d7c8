/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that sends. It takes spans out of the ring a few at a time and keeps those that a collector could not take
 * just now; what comes meanwhile waits in the ring, and when that is full it is dropped and counted. Trouble is told
 * once, and once when it is over.
 */
#include "telemetry/otlp.h"

#include "base/text.h"
#include "fields/json_value.h"
#include "telemetry/otlp_json.h"
#include "telemetry/otlp_parts.h"

#include <stdlib.h>
#include <string.h>

#define TICK (500 * OUTBOX_MILLISECONDS)
#define LINGER (5 * OUTBOX_SECONDS) /* a span waits so long for others to go with it */
#define TIMEOUT (10 * OUTBOX_SECONDS)
#define LAST_TIMEOUT (3 * OUTBOX_SECONDS)
#define DELAY_MIN OUTBOX_SECONDS
#define DELAY_MAX OUTBOX_MINUTES

static _Atomic bool exists;
static _Atomic uint64_t sent, dropped, failures;

bool otlp_look(struct otlp_counts *ret_counts)
{
	if (!atomic_load_explicit(&exists, memory_order_relaxed))
		return false;
	ret_counts->sent = atomic_load_explicit(&sent, memory_order_relaxed);
	ret_counts->dropped = atomic_load_explicit(&dropped, memory_order_relaxed);
	ret_counts->failures = atomic_load_explicit(&failures, memory_order_relaxed);
	return true;
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

void otlp_observe(void *context, const char *source, const struct batch_report *report)
{
	struct otlp *o = context;

	if (o->traces && !otlp_ring_put(&o->ring, source, report))
		count(&dropped, 1);
}

static outbox_time now_of(struct otlp *o)
{
	return o->clock->mono(o->clock);
}

static void went_wrong(struct otlp *o, const struct outbox_error *err)
{
	outbox_time now = now_of(o);
	char wait[DURATION_TEXT_MAX];

	count(&failures, 1);
	o->delay = o->delay ? o->delay * 2 : DELAY_MIN;
	if (o->delay > DELAY_MAX)
		o->delay = DELAY_MAX;
	o->not_before = now + o->delay;
	if (o->away)
		return;
	o->away = true;
	o->away_since = now;
	log_event(&o->log, EVENT_OTLP_AWAY, NULL,
		  "otlp.endpoint: %s; spans wait and are dropped when there are too many, delivery is "
		  "not affected; next try in %s, then at most every 1 min",
		  err->message, duration_human(o->delay, wait));
}

static void went_well(struct otlp *o)
{
	char lasted[DURATION_TEXT_MAX];

	o->delay = 0;
	o->not_before = 0;
	if (!o->away)
		return;
	o->away = false;
	log_event(&o->log, EVENT_OTLP_BACK, NULL, "otlp.endpoint answers again after %s",
		  duration_human(now_of(o) - o->away_since, lasted));
}

static bool ask_stop(void *context)
{
	struct otlp *o = context;

	return now_of(o) >= atomic_load(&o->until);
}

/* Takes the body over. */
static int send(struct otlp *o, const char *url, json_t *body, outbox_time timeout,
		struct outbox_error *err)
{
	char *text = body ? json_dumps(body, JSON_STYLE) : NULL;
	int r;

	json_decref(body);
	if (!text)
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	else
		r = post_send(o->post,
			      &(struct post_request){ .url = url,
						      .headers = (const char *const *)o->headers,
						      .body = text,
						      .size = strlen(text),
						      .timeout = timeout,
						      .stop = ask_stop,
						      .context = o },
			      err);
	free(text);
	if (!r)
		went_well(o);
	else if (!ask_stop(o))
		went_wrong(o, err);
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
	r = send(o, o->traces_url,
		 otlp_spans_json(o->batches, o->n_batches, &o->sender, &o->random.base), timeout,
		 &err);
	if (r && may_repeat(&err))
		return false;
	count(r ? &dropped : &sent, o->n_batches);
	o->n_batches = 0;
	return !r;
}

static bool send_metrics(struct otlp *o, outbox_time timeout)
{
	const struct watch_sample *sample = watch_hold(o->watch);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	json_t *body;

	if (!sample)
		return true;
	body = otlp_metrics_json(sample, &o->sender);
	watch_release(o->watch, sample);
	return !send(o, o->metrics_url, body, timeout, &err);
}

static void work(struct otlp *o)
{
	outbox_time now = now_of(o);
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
static void finish(struct otlp *o)
{
	outbox_time until = atomic_load(&o->until), left = until - now_of(o);
	bool well = !o->away;

	while (well && o->traces && left > 0 && (o->n_batches || otlp_ring_count(&o->ring))) {
		well = send_spans(o, left);
		left = until - now_of(o);
	}
	if (well && o->metrics && left > 0)
		send_metrics(o, left);
}

static void *run(void *context)
{
	struct otlp *o = context;
	bool stopping = false;

	while (!stopping) {
		work(o);
		waiting_lock(&o->waiting);
		if (!o->stopping)
			waiting_wait(&o->waiting, TICK);
		stopping = o->stopping;
		waiting_unlock(&o->waiting);
	}
	finish(o);
	return NULL;
}

int otlp_start(struct otlp *o, struct watch *watch, struct outbox_error *err)
{
	o->watch = watch;
	o->metrics_at = now_of(o) + o->interval;
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
	atomic_store(&o->until, now_of(o) + LAST_TIMEOUT); /* ends a request that is under way */
	waiting_ring(&o->waiting);
	waiting_unlock(&o->waiting);
	pthread_join(o->thread, NULL);
	o->running = false;
}

void otlp_exists(void)
{
	atomic_store(&exists, true);
}
