/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/kafka/driver.h"

#include "base/text.h"

#include <string.h>

#define WAIT 10 /* ms between two looks while connecting */
#define PATIENCE \
	(2 * OUTBOX_SECONDS) /* all brokers down: a leader that moves is waited for, not more */

int kafka_remaining(const struct kafka_transport *kafka, outbox_time deadline, int max)
{
	outbox_time left = broker_time_left(&kafka->broker, deadline);

	if (left <= 0)
		return 0;
	/* Rounded up: less than a millisecond is not nothing. */
	left = left / OUTBOX_MILLISECONDS + 1;
	return left < max ? (int)left : max;
}

bool kafka_is_cut_off(const struct kafka_transport *kafka)
{
	const struct kafka_trouble *trouble = &kafka->trouble;

	return trouble->status ||
	       (trouble->all_down &&
		kafka->broker.clock->mono(kafka->broker.clock) - trouble->down_since > PATIENCE);
}

int kafka_fail(const struct kafka_transport *kafka, struct outbox_error *err)
{
	const struct kafka_trouble *trouble = &kafka->trouble;
	int status = trouble->status;

	if (!status)
		status = trouble->all_down ? OUTBOX_ECONN : OUTBOX_ETIMEDOUT;
	return outbox_fail_native(err, status, trouble->native, "%s: %s%s%s", kafka->broker.shown,
				  status == OUTBOX_ETIMEDOUT ? "no answer in time" : "",
				  status == OUTBOX_ETIMEDOUT && trouble->text[0] ? "; last: " : "",
				  trouble->text);
}

/* ---- the library's callbacks, made inside rd_kafka_poll() and rd_kafka_flush() ----------------- */

static void record_trouble(struct kafka_trouble *trouble, int code, const char *reason)
{
	trouble->native = code;
	text_shown(trouble->text, sizeof(trouble->text),
		   reason && reason[0] ? reason : rd_kafka_err2str((rd_kafka_resp_err_t)code));
}

static void on_error(rd_kafka_t *producer, int code, const char *reason, void *opaque)
{
	struct kafka_transport *kafka = opaque;
	struct kafka_trouble *trouble = &kafka->trouble;
	char fatal[sizeof(trouble->text)];

	if (trouble->status) /* the first one is the cause */
		return;
	if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
		trouble->all_down = true;
		trouble->down_since = kafka->broker.clock->mono(kafka->broker.clock);
		/* Of all that led here the last one before this says most; alone, this says something. */
		if (!trouble->native)
			record_trouble(trouble, code, reason);
		return;
	}
	if (code == RD_KAFKA_RESP_ERR__FATAL) {
		code = rd_kafka_fatal_error(producer, fatal, sizeof(fatal));
		reason = fatal;
		trouble->status = kafka_status(code);
	} else if (kafka_classify(code) == KAFKA_FORBIDDEN) {
		trouble->status = OUTBOX_EAUTH;
	}
	record_trouble(trouble, code, reason);
}

static void on_report(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque)
{
	struct kafka_transport *kafka = opaque;
	size_t i = (size_t)(uintptr_t)message->_private;
	struct kafka_report *report;

	(void)producer;
	if (!kafka->run.batch || i >= kafka->run.batch->count)
		return;
	report = &kafka->run.reports[i];
	if (report->state != KAFKA_OPEN)
		return;
	report->state = KAFKA_REPORTED;
	report->error = message->err;
	report->status = rd_kafka_message_status(message);
	report->partition = message->partition;
	kafka->run.open--;
	if (!message->err)
		kafka->trouble.all_down = false;
}

/* ---- connect and disconnect --------------------------------------------------------------------- */

static int make_producer(struct kafka_transport *kafka, struct outbox_error *err)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_dup(kafka->conf);
	char text[300], shown[300];

	rd_kafka_conf_set_opaque(conf, kafka);
	rd_kafka_conf_set_log_cb(conf, NULL);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_dr_msg_cb(conf, on_report);
	kafka->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (kafka->producer)
		return OUTBOX_OK;
	rd_kafka_conf_destroy(conf);
	return outbox_fail_native(err, OUTBOX_ECONFIG, rd_kafka_last_error(), "%s: %s",
				  kafka->broker.shown, text_shown(shown, sizeof(shown), text));
}

/* The library connects by itself; that a broker answered shows in the cluster's id. */
static int await_broker(struct kafka_transport *kafka, outbox_time deadline, struct outbox_error *err)
{
	int left = kafka_remaining(kafka, deadline, INT32_MAX);

	/* Counted too: a clock that stands still is no reason to wait for ever. */
	for (int waited = 0; waited < left; waited += WAIT) {
		int wait = kafka_remaining(kafka, deadline, WAIT);
		char *cluster;

		if (!wait)
			break;
		rd_kafka_poll(kafka->producer, wait);
		if (kafka->trouble.status || kafka->trouble.all_down)
			return kafka_fail(kafka, err);
		cluster = rd_kafka_clusterid(kafka->producer, 0);
		if (cluster) {
			rd_kafka_mem_free(kafka->producer, cluster);
			return OUTBOX_OK;
		}
	}
	return kafka_fail(kafka, err);
}

/* Without its only topic the target cannot work: that is nobody's attempt. */
static int check_topic(struct kafka_transport *kafka, outbox_time deadline, struct outbox_error *err)
{
	struct kafka_topic *topic;
	int r;

	if (!template_is_constant(&kafka->topic))
		return OUTBOX_OK;
	r = kafka_topic_get(kafka, kafka->topic_text, &topic, err);
	if (r)
		return r;
	topic->wanted = true;
	r = kafka_topics_look(kafka, deadline, err);
	topic->wanted = false;
	return r ? r : kafka_topic_check(kafka, topic, err);
}

int kafka_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err)
{
	struct kafka_transport *kafka = kafka_downcast(transport);
	int r;

	kafka_disconnect(transport);
	memset(&kafka->trouble, 0, sizeof(kafka->trouble));
	kafka->learned_bytes = 0;
	r = make_producer(kafka, err);
	if (!r)
		r = await_broker(kafka, deadline, err);
	if (!r)
		r = check_topic(kafka, deadline, err);
	if (r)
		kafka_disconnect(transport);
	return r;
}

void kafka_disconnect(struct outbox_transport *transport)
{
	struct kafka_transport *kafka = kafka_downcast(transport);

	kafka->dead = false;
	if (!kafka->producer)
		return;
	kafka_topics_clear(&kafka->topics);
	kafka_destroy(kafka->producer);
	kafka->producer = NULL;
}
