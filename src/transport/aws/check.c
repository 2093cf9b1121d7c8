/* SPDX-License-Identifier: Apache-2.0 */
/* The service tells the attributes of a queue or topic to whoever may ask; a right to send alone is enough for all else. */

#include "transport/aws/driver.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* One request and its answer. */
struct question {
	struct aws_transport *t;
	struct buf answer;
	int status; /* 0: none came */
	bool asked;
	struct outbox_error err;
};

static bool next_question(void *context, struct web_request *request)
{
	struct question *q = context;
	const struct aws_service *service = q->t->service;

	if (q->asked)
		return false;
	q->asked = true;
	service->put_check(q->t, &request->buffer);
	return aws_request_sign(q->t, service->check_target, request, &q->err) == OUTBOX_OK;
}

static void take_answer(void *context, const struct web_request *request,
			const struct web_answer *answer)
{
	struct question *q = context;

	(void)request;
	q->status = answer->whole ? answer->status : 0;
	buf_append(&q->answer, answer->body, answer->size);
	if (!q->status)
		outbox_fail_native(&q->err, aws_failure_status(answer->failure),
				   (int)answer->failure, "%s: %s", q->t->broker.shown, answer->why);
}

/* What its refusal means: that we may not ask is no harm, that there is no such place is. */
static int judge_refusal(const struct question *q, struct findings *f, struct outbox_error *err)
{
	struct aws_result said = { .state = AWS_FAILED };
	const struct aws_row *row;

	q->t->service->read_error(buf_str(&q->answer), q->answer.size, &said);
	row = aws_row_find(said.code, q->status);
	text_clean(said.text);
	text_clean(said.code);
	if (strcmp(row->code, "AccessDenied") != 0 && strcmp(row->code, "AuthorizationError") != 0)
		return outbox_fail_native(err, row->status ? row->status : OUTBOX_ECONN, q->status,
					  "%s: %s: %s; %s", q->t->broker.shown, said.code,
					  said.text, row->remedy);
	findings_add(f, FINDING_NOTE,
		     "its settings cannot be seen: this key may not ask for its attributes");
	return OUTBOX_OK;
}

static void judge_size(const struct question *q, struct findings *f)
{
	char text[32];
	int64_t size;

	if (!q->t->service->read_attribute(buf_str(&q->answer), q->answer.size,
					   "MaximumMessageSize", text, sizeof(text)) ||
	    number_parse("", text, 0, INT64_MAX, &size, NULL) != OUTBOX_OK)
		return;
	findings_add(f, size < (int64_t)AWS_BATCH_BYTES ? FINDING_NOTE : FINDING_OK,
		     "a message may have %lld bytes%s", (long long)size,
		     size < (int64_t)AWS_BATCH_BYTES ? "; say so with max_size, and batch=1" : "");
}

static void judge_encryption(const struct question *q, struct findings *f)
{
	const struct aws_service *service = q->t->service;
	char text[300];

	if (service->read_attribute(buf_str(&q->answer), q->answer.size, "KmsMasterKeyId", text,
				    sizeof(text)) &&
	    text[0])
		return;
	if (service->read_attribute(buf_str(&q->answer), q->answer.size, "SqsManagedSseEnabled",
				    text, sizeof(text)) &&
	    strcmp(text, "true") == 0)
		return;
	findings_add(f, FINDING_NOTE, "not encrypted at rest");
}

static void judge_connection(const struct aws_transport *t, struct findings *f)
{
	const struct endpoint *e = &t->broker.endpoint;

	if (strstr(e->addresses[0].host, ".amazonaws.com"))
		findings_add(f, FINDING_OK,
			     "acknowledged when it is stored on several servers of the region");
	else
		findings_add(f, FINDING_NOTE,
			     "not AWS itself: ask whoever runs it what an acknowledgement is worth");
	if (!e->tls && !endpoint_is_loopback(e))
		findings_add(f, FINDING_WARNING, "messages travel in clear text; use %s://",
			     t->service->name);
	if (e->tls && !e->verify)
		findings_add(
			f, FINDING_WARNING,
			"verify=no: whoever is in between can read and answer; name its CA with ca");
}

static int ask(struct question *q, outbox_time deadline, struct outbox_error *err)
{
	struct web_sender sender = { next_question, take_answer, q };
	int r = aws_credentials_refresh(q->t, deadline, err);

	if (!r)
		r = web_run(q->t->web, &sender, deadline, err);
	if (r || q->status)
		return r;
	return q->err.status
		       ? outbox_fail_native(err, q->err.status, q->err.native, "%s", q->err.message)
		       : outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer in time",
				     q->t->broker.shown);
}

int aws_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	struct aws_transport *t = aws_downcast(transport);
	struct question q = { .t = t, .answer = BUF_INIT(WEB_READ_MAX), .err = OUTBOX_ERROR_INIT };
	struct findings f = FINDINGS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r = broker_ready(&t->broker, t->web, deadline, &err);

	if (!r)
		r = ask(&q, deadline, &err);
	judge_connection(t, &f);
	if (!r && q.status != 200)
		r = judge_refusal(&q, &f, &err);
	else if (!r) {
		t->service->judge(t, buf_str(&q.answer), q.answer.size, &f);
		judge_encryption(&q, &f);
		judge_size(&q, &f);
	}
	buf_deinit(&q.answer);
	return findings_finish(&f, r, &err, text, size);
}
