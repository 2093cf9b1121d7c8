/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch: as many requests in flight as the options say, one of each key at a time. What cannot be begun in time is left
 * without a verdict, which counts as not sent: a slow receiver is no outage. An answer that is about the whole target
 * ends the sending; what is in flight then is waited for, since it may have been accepted.
 */

#include "transport/http/driver.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "core/secrets.h"
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

#define BATCH_BYTES ((size_t)1 << 20)
#define ANSWER_SHOWN 300

/* One call of publish(). */
struct run {
	struct http_transport *t;
	struct outbox_batch *batch;
	outbox_time begin_until; /* nothing more is begun afterwards */
	size_t at;               /* in the list of those that may go */
	size_t end;              /* behind the last one of the batch request in flight */
	bool stopped;
	size_t answered, timeouts;
	struct outbox_error trouble; /* of the whole target; status 0: none */
};

/* ---- verdicts --------------------------------------------------------------------------------------- */

/* Something is wrong with the whole target. That it is gone for good goes before all else. */
static void stop_run(struct run *run, int status, int native, const char *why)
{
	run->stopped = true;
	if (!run->trouble.status || (status == OUTBOX_EGONE && run->trouble.status != OUTBOX_EGONE))
		outbox_fail_native(&run->trouble, status, native, "%s: %s", run->t->broker.shown,
				   why);
}

/* The host of the redirect; "somewhere" when that cannot be said. */
static void show_location(const struct web_answer *answer, char *out, size_t size)
{
	CURLU *url = curl_url();
	char *location = NULL, *host = NULL, shown[200];

	curl_easy_getinfo(answer->handle, CURLINFO_REDIRECT_URL, &location);
	if (url && location && !curl_url_set(url, CURLUPART_URL, location, 0))
		curl_url_get(url, CURLUPART_HOST, &host, 0);
	snprintf(out, size, "a redirect to %s",
		 host ? text_shown(shown, sizeof(shown), host) : "somewhere");
	curl_free(host);
	curl_url_cleanup(url);
}

/* "422: what it says", for people. */
static void show_answer(const struct web_answer *answer, const struct http_row *row, char *out,
			size_t size)
{
	_cleanup_(buf_deinit) struct buf hidden = BUF_INIT(4 * ANSWER_READ_MAX);
	char said[ANSWER_SHOWN + 1] = "";

	/* before it is cut: no half of a secret is left */
	hide_secrets(answer->body, &hidden);
	if (row->first == 300)
		show_location(answer, said, sizeof(said));
	else if (!hidden.failed)
		snprintf(said, sizeof(said), "%s", buf_str(&hidden));
	text_clean(said);
	snprintf(out, size, "%d%s%s%s", answer->status, said[0] ? ": " : "", said, row->remedy);
}

/* The messages of a request: one, or those of a batch that could be encoded. reason: NULL with ACKED. */
static void set_verdict(struct run *run, const struct web_request *request, int verdict, int native,
			const char *reason)
{
	const uint32_t *ready = run->t->order.ready;

	if (run->t->batch == 1) {
		outbox_batch_verdict(run->batch, request->tag, verdict, native,
				     reason ? "%s" : NULL, reason);
		return;
	}
	for (size_t k = request->tag; k < run->end; k++)
		if (run->batch->items[ready[k]]->verdict == OUTBOX_VERDICT_UNSET)
			outbox_batch_verdict(run->batch, ready[k], verdict, native,
					     reason ? "%s" : NULL, reason);
}

static void keep_answer(struct run *run, const struct web_request *request,
			const struct web_answer *answer, outbox_time retry_after)
{
	const uint32_t *ready = run->t->order.ready;
	size_t first = request->tag, end = run->t->batch == 1 ? first + 1 : run->end;

	for (size_t k = first; k < end; k++) {
		size_t i = run->t->batch == 1 ? first : ready[k];

		outbox_batch_answer(run->batch, i, answer->body, answer->size);
		outbox_batch_retry_after(run->batch, i, retry_after);
	}
}

/* A batch of several was refused, and nobody knows for which: it comes again in smaller ones until one is alone. */
static int batch_verdict(const struct run *run, const struct web_request *request, int verdict)
{
	bool several = run->t->batch > 1 && run->end - request->tag > 1;

	return several && verdict == OUTBOX_REJECTED ? OUTBOX_UNKNOWN : verdict;
}

static void judge_answer(struct run *run, const struct web_request *request,
			 const struct web_answer *answer)
{
	const struct http_row *row = http_row_find(answer->status);
	outbox_time retry_after;
	char shown[ANSWER_SHOWN + 200];

	run->answered++;
	if (row->verdict == OUTBOX_ACKED) {
		set_verdict(run, request, OUTBOX_ACKED, answer->status, NULL);
		return;
	}
	retry_after =
		http_retry_after(web_answer_header(answer, "Retry-After"), run->t->broker.clock);
	show_answer(answer, row, shown, sizeof(shown));
	if (row->verdict != OUTBOX_VERDICT_UNSET) {
		set_verdict(run, request, batch_verdict(run, request, row->verdict), answer->status,
			    shown);
		keep_answer(run, request, answer, retry_after);
	}
	if (row->status) {
		stop_run(run, row->status, answer->status, shown);
		if (retry_after > run->batch->back_off)
			outbox_batch_back_off(run->batch, retry_after);
	}
}

static void judge_failure(struct run *run, const struct web_request *request,
			  const struct web_answer *answer)
{
	char why[CURL_ERROR_SIZE];

	snprintf(why, sizeof(why), "%s", answer->why);
	text_clean(why);
	if (answer->sent)
		set_verdict(run, request, OUTBOX_UNKNOWN, (int)answer->failure, why);
	if (run->t->refused[0]) {
		stop_run(run, OUTBOX_ECONFIG, 0, run->t->refused);
	} else if (answer->failure == CURLE_OPERATION_TIMEDOUT) {
		run->timeouts++;
		run->stopped |= !run->answered;
	} else if (answer->failure != CURLE_HTTP2_STREAM) { /* which leaves the connection alone */
		stop_run(run, http_failure_status(answer->failure), (int)answer->failure, why);
	}
}

/* ---- requests --------------------------------------------------------------------------------------- */

/* Message i is done: the one behind it in its key may go. */
static void release_next(struct run *run, size_t i)
{
	struct key_order *order = &run->t->order;

	if (order->next[i] != KEY_ORDER_NONE)
		order->ready[order->n_ready++] = order->next[i];
}

/* Put message i into the request. False: it cannot be sent, and nobody else suffers, unless the run has stopped. */
static bool add_message(struct run *run, size_t i, struct web_request *request)
{
	struct outbox_error why = OUTBOX_ERROR_INIT, err = OUTBOX_ERROR_INIT;
	int r = http_request_add(run->t, run->batch->items[i], request, &why);

	if (!r)
		return true;
	r = transport_reject(run->batch, i, r, &why, &err);
	if (r)
		stop_run(run, r, 0, err.message);
	return false;
}

static bool end_request(struct run *run, const struct outbox_message *first, const char *ids,
			struct web_request *request)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r = http_request_end(run->t, first, ids, request, &why);

	if (r)
		stop_run(run, r, 0, why.message);
	return !r;
}

static bool next_single(struct run *run, struct web_request *request)
{
	struct key_order *order = &run->t->order;

	while (!run->stopped && run->at < order->n_ready) {
		size_t i = order->ready[run->at++];
		const struct outbox_message *message = run->batch->items[i]->message;

		if (add_message(run, i, request)) {
			request->tag = i;
			return end_request(run, message, message->id, request);
		}
		release_next(run, i);
	}
	return false;
}

/* As many as fit; each has gone through the encoder by itself, so that a bad one is left out. */
static bool next_batch(struct run *run, struct web_request *request)
{
	struct key_order *order = &run->t->order;
	struct buf ids = BUF_INIT(BATCH_BYTES);
	const struct outbox_message *first = NULL;
	size_t count = 0;
	bool made;

	request->tag = run->at;
	while (!run->stopped && run->at < order->n_ready && count < (size_t)run->t->batch) {
		size_t i = order->ready[run->at];
		const struct outbox_message *message = run->batch->items[i]->message;

		if (count && request->buffer.size + message->size > BATCH_BYTES)
			break;
		run->at++;
		if (!add_message(run, i, request))
			continue;
		first = first ? first : message;
		buf_printf(&ids, "%s\n", message->id);
		count++;
	}
	run->end = run->at;
	made = count && !run->stopped && end_request(run, first, buf_str(&ids), request);
	buf_deinit(&ids);
	return made;
}

static bool next_request(void *context, struct web_request *request)
{
	struct run *run = context;
	struct outbox_clock *clock = run->t->broker.clock;

	if (run->stopped || clock->mono(clock) > run->begin_until)
		return false;
	return run->t->batch > 1 ? next_batch(run, request) : next_single(run, request);
}

static void request_done(void *context, const struct web_request *request,
			 const struct web_answer *answer)
{
	struct run *run = context;

	/* A refusal counts as soon as it is read; half an acknowledgement is none. */
	if (answer->whole || answer->status >= 300)
		judge_answer(run, request, answer);
	else
		judge_failure(run, request, answer);
	if (run->t->batch == 1)
		release_next(run, request->tag);
}

int http_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		 outbox_time deadline, struct outbox_error *err)
{
	struct http_transport *t = http_downcast(transport);
	struct outbox_clock *clock = t->broker.clock;
	struct run run = { .t = t, .batch = batch };
	struct web_sender sender = { next_request, request_done, &run };
	outbox_time now = clock->mono(clock);
	int r = broker_ready(&t->broker, t->web, deadline, err);

	/* the last quarter is for answers */
	run.begin_until = deadline - (deadline - now) / 4;
	t->refused[0] = '\0';
	/* a batch request has them in their order, and the next one follows its answer */
	if (!r)
		r = key_order_begin(&t->order, batch, t->unordered || t->batch > 1, err);
	if (!r)
		r = web_run(t->web, &sender, deadline, err);
	if (r)
		return r;
	if (run.trouble.status)
		return outbox_fail_native(err, run.trouble.status, run.trouble.native, "%s",
					  run.trouble.message);
	if (run.timeouts && !run.answered)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer in time", t->broker.shown);
	/* a stream of HTTP/2 was reset; the connection under it may be what does not answer */
	return run.timeouts ? http_renew(t, err) : OUTBOX_OK;
}
