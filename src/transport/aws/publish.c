/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch: several requests in flight, each with up to ten messages, one of each key. A request is not all or nothing: were
 * two messages of a key in one, the second could be stored without the first. What cannot be begun in time has no verdict,
 * which counts as not sent. A refusal of the place ends the sending; what is in flight is waited for.
 */

#include "transport/aws/driver.h"

#include "base/text.h"
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

/* One call of publish(). */
struct run {
	struct aws_transport *t;
	struct outbox_batch *batch;
	outbox_time begin_until; /* nothing more is begun afterwards */
	size_t at;               /* in the list of those that may go */
	bool stopped;
	size_t answered, timeouts;
	struct outbox_error trouble; /* of the whole target; status 0: none */
};

/* ---- verdicts --------------------------------------------------------------------------------------- */

static void stop_run(struct run *run, int status, int native, const char *why)
{
	run->stopped = true;
	if (!run->trouble.status)
		outbox_fail_native(&run->trouble, status, native, "%s: %s", run->t->broker.shown,
				   why);
}

static void set_all(struct run *run, const struct aws_flight *flight, int verdict, int native,
		    const char *reason)
{
	for (size_t i = 0; i < flight->n; i++)
		outbox_batch_verdict(run->batch, flight->items[i], verdict, native, "%s", reason);
}

/* "QueueDoesNotExist: what it says; create it", for people. */
static void show(const struct aws_result *said, const struct aws_row *row, int status, char *out,
		 size_t size)
{
	char code[AWS_CODE_MAX];

	snprintf(code, sizeof(code), "%s", said->code);
	if (!code[0])
		snprintf(code, sizeof(code), "http %d", status);
	snprintf(out, size, "%s%s%s%s%s", code, said->text[0] ? ": " : "", said->text,
		 row->remedy[0] ? "; " : "", row->remedy);
	text_clean(out);
}

static void judge_entry(struct run *run, size_t i, const struct aws_result *result)
{
	/* what nobody knows is the message's fault, or the service's */
	int status = result->our_fault ? 400 : 500;
	const struct aws_row *row = aws_row_find(result->code, status);
	char shown[AWS_TEXT_MAX + AWS_CODE_MAX + 100];

	if (result->state == AWS_DONE) {
		outbox_batch_verdict(run->batch, i, OUTBOX_ACKED, 200, NULL);
		return;
	}
	if (result->state == AWS_NOT_NAMED) {
		outbox_batch_verdict(run->batch, i, OUTBOX_UNKNOWN, 200,
				     "the answer does not name it");
		return;
	}
	show(result, row, status, shown, sizeof(shown));
	if (row->verdict != OUTBOX_VERDICT_UNSET)
		outbox_batch_verdict(run->batch, i, row->verdict, status, "%s", shown);
	else
		stop_run(run, row->status, status, shown);
}

/* All of them were refused, and of several nobody knows because of which: they come again one by one. */
static void judge_refusal(struct run *run, const struct aws_flight *flight,
			  const struct web_answer *answer)
{
	struct aws_result said = { .state = AWS_FAILED };
	const struct aws_row *row;
	char shown[AWS_TEXT_MAX + AWS_CODE_MAX + 100];

	run->t->service->read_error(answer->body, answer->size, &said);
	row = aws_row_find(said.code, answer->status);
	show(&said, row, answer->status, shown, sizeof(shown));
	if (row->verdict != OUTBOX_VERDICT_UNSET) {
		int verdict = row->status || flight->n > 1 ? OUTBOX_UNKNOWN : row->verdict;

		set_all(run, flight, verdict, answer->status, shown);
		for (size_t i = 0; i < flight->n; i++)
			outbox_batch_answer(run->batch, flight->items[i], answer->body, answer->size);
	}
	if (row->status)
		stop_run(run, row->status, answer->status, shown);
}

/* Not one of the messages was stored, and each because of the service: as if all were refused in one. NULL: otherwise. */
static const struct aws_row *find_outage(const struct aws_result *results, size_t n)
{
	const struct aws_row *row = NULL;

	for (size_t i = 0; i < n; i++) {
		if (results[i].state != AWS_FAILED)
			return NULL;
		row = aws_row_find(results[i].code, results[i].our_fault ? 400 : 500);
		if (row->verdict != OUTBOX_RETRY || !row->status)
			return NULL;
	}
	return row;
}

static void judge_outage(struct run *run, const struct aws_flight *flight,
			 const struct aws_result *results, const struct aws_row *row)
{
	char shown[AWS_TEXT_MAX + AWS_CODE_MAX + 100];

	show(&results[0], row, 500, shown, sizeof(shown));
	set_all(run, flight, OUTBOX_UNKNOWN, 500, shown);
	stop_run(run, row->status, 500, shown);
}

static void judge_answer(struct run *run, const struct aws_flight *flight,
			 const struct web_answer *answer)
{
	struct aws_result results[AWS_BATCH_MAX] = { { 0 } };
	const struct aws_row *outage;

	run->answered++;
	if (answer->status != 200) {
		judge_refusal(run, flight, answer);
		return;
	}
	if (!run->t->service->read_results(answer->body, answer->size, results)) {
		set_all(run, flight, OUTBOX_UNKNOWN, 200, "not an answer of the service");
		stop_run(run, OUTBOX_ECONN, 200, "not an answer of the service; correct the host");
		return;
	}
	outage = find_outage(results, flight->n);
	if (outage) {
		judge_outage(run, flight, results, outage);
		return;
	}
	for (size_t i = 0; i < flight->n; i++)
		judge_entry(run, flight->items[i], &results[i]);
}

static void judge_failure(struct run *run, const struct aws_flight *flight,
			  const struct web_answer *answer)
{
	char why[CURL_ERROR_SIZE];

	snprintf(why, sizeof(why), "%s", answer->why);
	text_clean(why);
	if (answer->sent)
		set_all(run, flight, OUTBOX_UNKNOWN, (int)answer->failure, why);
	if (answer->failure == CURLE_OPERATION_TIMEDOUT) {
		run->timeouts++;
		run->stopped |= !run->answered;
	} else {
		stop_run(run, aws_failure_status(answer->failure), (int)answer->failure, why);
	}
}

/* ---- requests --------------------------------------------------------------------------------------- */

/* Message i is settled: the one behind it in its key may go, unless that stops here. */
static void release_next(struct run *run, size_t i)
{
	struct key_order *order = &run->t->order;

	if (key_order_settle(order, run->batch, i) && order->next[i] != KEY_ORDER_NONE)
		order->ready[order->n_ready++] = order->next[i];
}

static struct aws_flight *free_flight(struct aws_transport *t, size_t *ret_number)
{
	*ret_number = 0;
	while (t->flights[*ret_number].n)
		(*ret_number)++;
	return &t->flights[*ret_number];
}

/* False: it does not fit any more. */
static bool add_message(struct run *run, struct aws_flight *flight, size_t *bytes,
			struct web_request *request)
{
	struct outbox_error why = OUTBOX_ERROR_INIT, err = OUTBOX_ERROR_INIT;
	size_t before = request->buffer.size, size, i = run->t->order.ready[run->at];
	int r = aws_request_add(run->t, run->batch->items[i], flight->n, request, &size, &why);

	if (!r && flight->n && *bytes + size > AWS_BATCH_BYTES) {
		request->buffer.size = before;
		return false;
	}
	run->at++;
	if (!r) {
		flight->items[flight->n++] = (uint32_t)i;
		*bytes += size;
		return true;
	}
	request->buffer.size = before;
	r = transport_reject(run->batch, i, r, &why, &err);
	if (r)
		stop_run(run, r, 0, err.message);
	else
		release_next(run, i);
	return true;
}

static bool next_request(void *context, struct web_request *request)
{
	struct run *run = context;
	struct aws_transport *t = run->t;
	struct outbox_clock *clock = t->broker.clock;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct aws_flight *flight = free_flight(t, &request->tag);
	size_t bytes = 0;
	int r;

	if (run->stopped || clock->mono(clock) > run->begin_until)
		return false;
	while (!run->stopped && run->at < t->order.n_ready && flight->n < (size_t)t->batch)
		if (!add_message(run, flight, &bytes, request))
			break;
	if (flight->n && !run->stopped) {
		t->service->put_end(&request->buffer);
		r = aws_request_sign(t, t->service->target, request, &err);
		if (!r)
			return true;
		stop_run(run, r, 0, err.message);
	}
	flight->n = 0;
	return false;
}

static void request_done(void *context, const struct web_request *request,
			 const struct web_answer *answer)
{
	struct run *run = context;
	struct aws_flight *flight = &run->t->flights[request->tag];

	/* A refusal counts as soon as it is read; half a list of verdicts is none. */
	if (answer->whole || answer->status >= 300)
		judge_answer(run, flight, answer);
	else
		judge_failure(run, flight, answer);
	for (size_t i = 0; i < flight->n; i++)
		release_next(run, flight->items[i]);
	flight->n = 0;
}

int aws_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		outbox_time deadline, struct outbox_error *err)
{
	struct aws_transport *t = aws_downcast(transport);
	struct outbox_clock *clock = t->broker.clock;
	struct run run = { .t = t, .batch = batch };
	struct web_sender sender = { next_request, request_done, &run };
	outbox_time now = clock->mono(clock);
	int r = broker_ready(&t->broker, t->web, deadline, err);

	if (!r)
		r = aws_credentials_refresh(t, deadline, err);
	/* the last quarter is for answers */
	run.begin_until = deadline - (deadline - now) / 4;
	memset(t->flights, 0, sizeof(t->flights));
	if (!r)
		r = key_order_begin(&t->order, batch, t->unordered, err);
	if (!r)
		r = web_run(t->web, &sender, deadline, err);
	if (r)
		return r;
	if (run.trouble.status)
		return outbox_fail_native(err, run.trouble.status, run.trouble.native, "%s",
					  run.trouble.message);
	if (run.timeouts && !run.answered)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer in time", t->broker.shown);
	return OUTBOX_OK;
}
