/* SPDX-License-Identifier: Apache-2.0 */
/* Wait for the reports of a window, and turn them into verdicts. */
#include "transport/kafka/driver.h"

#include "base/text.h"

#include <stdio.h>

#define PURGE_TRIES 200

/* The purge is local: all reports come at once. Should one not, its message is UNKNOWN. */
static void purge(struct kafka_transport *kafka)
{
	rd_kafka_purge(kafka->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	for (int i = 0; i < PURGE_TRIES && kafka->run.open; i++)
		rd_kafka_poll(kafka->producer, KAFKA_TICK / 10);
}

int kafka_window_await(struct kafka_transport *kafka, struct outbox_error *err)
{
	struct kafka_run *run = &kafka->run;
	int left = kafka_remaining(kafka, run->deadline, INT32_MAX), waited = 0;

	while (run->open && !kafka_is_cut_off(kafka)) {
		int wait = kafka_remaining(kafka, run->deadline, KAFKA_TICK);

		/* Counted too: a clock that stands still is no reason to wait for ever. */
		if (!wait || waited >= left)
			break;
		if (rd_kafka_flush(kafka->producer, wait))
			waited += wait;
	}
	if (!run->open && !kafka->trouble.status)
		return OUTBOX_OK;
	purge(kafka);
	return kafka_fail(kafka, err);
}

/* ---- keys of which a message was refused for now ------------------------------------------------ */

bool kafka_key_has_failed(const struct kafka_run *run, const struct outbox_message *message)
{
	uint64_t hash;

	if (!run->n_failed || !message->key)
		return false;
	hash = text_hash(message->key);
	for (size_t i = 0; i < run->n_failed; i++)
		if (run->failed[i] == hash)
			return true;
	return false;
}

void kafka_key_failed(struct kafka_run *run, const struct outbox_message *message)
{
	if (message->key && !kafka_key_has_failed(run, message))
		run->failed[run->n_failed++] = text_hash(message->key);
}

/* ---- verdicts ------------------------------------------------------------------------------------ */

void kafka_note_trouble(struct kafka_transport *kafka, rd_kafka_resp_err_t error)
{
	struct kafka_trouble *trouble = &kafka->trouble;

	if (trouble->status)
		return;
	trouble->status = kafka_status(error);
	trouble->native = error;
	snprintf(trouble->text, sizeof(trouble->text), "%s", rd_kafka_err2str(error));
}

bool kafka_lost_place(struct kafka_transport *kafka, const struct kafka_topic *topic,
		      rd_kafka_resp_err_t error)
{
	struct kafka_trouble *trouble = &kafka->trouble;
	int status = kafka_place_status(error);

	if (!status || !template_is_constant(&kafka->topic))
		return false;
	if (trouble->status)
		return true;
	trouble->status = status;
	trouble->native = error;
	snprintf(trouble->text, sizeof(trouble->text), "topic %s: %s%s", topic->name,
		 rd_kafka_err2str(error),
		 status == OUTBOX_EAUTH ? "; give the user Write and Describe on it" : "");
	return true;
}

static bool same_set(const struct kafka_report *a, const struct kafka_report *b)
{
	return a->state == KAFKA_REPORTED && a->topic == b->topic && a->partition == b->partition &&
	       a->error == b->error;
}

/* Was message i refused alone? If not: how large was its message set? */
static bool refused_alone(const struct kafka_run *run, const size_t *list, size_t n, size_t i,
			  size_t *ret_bytes)
{
	size_t count = 0, bytes = 0;

	for (size_t at = 0; at < n; at++) {
		if (!same_set(&run->reports[list[at]], &run->reports[i]))
			continue;
		count++;
		bytes += run->reports[list[at]].bytes;
	}
	*ret_bytes = bytes;
	return count == 1;
}

/* The verdict by an error code of a message that was surely not stored. */
static void report_error(struct kafka_transport *kafka, size_t i)
{
	struct kafka_run *run = &kafka->run;
	struct kafka_report *report = &run->reports[i];
	const char *text = rd_kafka_err2str(report->error);

	if (kafka_lost_place(kafka, report->topic, report->error))
		return;
	switch (kafka_classify(report->error)) {
	case KAFKA_REFUSED:
		outbox_batch_verdict(run->batch, i, OUTBOX_REJECTED, report->error, "topic %s: %s",
				     report->topic->name, text);
		break;
	case KAFKA_FOR_NOW:
		report->topic->stale = true;
		outbox_batch_verdict(run->batch, i, OUTBOX_RETRY, report->error, "topic %s: %s",
				     report->topic->name, text);
		kafka_key_failed(run, run->batch->items[i]->message);
		break;
	default:
		kafka_note_trouble(kafka, report->error);
	}
}

static void settle_report(struct kafka_transport *kafka, size_t i)
{
	struct kafka_run *run = &kafka->run;
	const struct kafka_report *report = &run->reports[i];

	if (report->state == KAFKA_OPEN) {
		outbox_batch_verdict(run->batch, i, OUTBOX_UNKNOWN, 0, "sent, and no report came");
	} else if (report->status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED) {
		outbox_batch_verdict(run->batch, i, OUTBOX_UNKNOWN, report->error,
				     "sent, and not confirmed: %s", rd_kafka_err2str(report->error));
		kafka_lost_place(kafka, report->topic, report->error);
	} else if (report->error) {
		report_error(kafka, i);
	} else if (report->status == RD_KAFKA_MSG_STATUS_PERSISTED) {
		outbox_batch_verdict(run->batch, i, OUTBOX_ACKED, 0, NULL);
	} else {
		outbox_batch_verdict(run->batch, i, OUTBOX_UNKNOWN, 0, "a report without a result");
	}
}

/* Mark what came back with its whole message set: it is not known which of them the broker refused. */
static void mark_sets(struct kafka_transport *kafka, const size_t *list, size_t n)
{
	struct kafka_run *run = &kafka->run;
	size_t bytes;

	for (size_t at = 0; at < n; at++) {
		struct kafka_report *report = &run->reports[list[at]];

		if (report->state != KAFKA_REPORTED ||
		    report->status != RD_KAFKA_MSG_STATUS_NOT_PERSISTED ||
		    kafka_classify(report->error) != KAFKA_REFUSED)
			continue;
		report->split = !refused_alone(run, list, n, list[at], &bytes);
		/* Too large together: what the broker takes at once is less than that. */
		if (report->split && (report->error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
				      report->error == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE))
			kafka->learned_bytes = bytes / 2 + 1;
	}
}

size_t kafka_window_report(struct kafka_transport *kafka, size_t *list, size_t n)
{
	size_t back = 0;

	mark_sets(kafka, list, n);
	for (size_t at = 0; at < n; at++) {
		size_t i = list[at];
		struct kafka_report *report = &kafka->run.reports[i];

		if (report->split)
			list[back++] = i;
		else if (report->state != KAFKA_LEFT)
			settle_report(kafka, i);
		report->split = false;
	}
	return back;
}
