/* SPDX-License-Identifier: Apache-2.0 */
/* For doctor: what an acknowledgement of this target's streams means. Asked from JetStream's own API. */

#include "transport/nats/driver.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest wait of the default retry policy, and a lease: so much later a repeat may come. */
#define LONGEST_RETRY (5 * OUTBOX_MINUTES + 15 * OUTBOX_SECONDS)
#define NANOSECONDS_PER_MICROSECOND 1000

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_WARNING, LEVEL_ERROR };

/* ---- the API ------------------------------------------------------------------------------------------ */

#define STREAM_NOT_FOUND 10059

static int ask(struct nats_transport *t, const char *subject, const char *json,
	       outbox_time deadline, json_t **ret_answer, struct outbox_error *err)
{
	char *text = NULL;
	json_t *answer;
	int r = pump_request(t, subject, json, deadline, &text, err);

	if (r != OUTBOX_OK)
		return r;
	answer = json_loads(text, 0, NULL);
	free(text);
	if (!json_is_object(answer)) {
		json_decref(answer);
		return outbox_fail(err, OUTBOX_EPROTO, "%s: the answer to %s is not JetStream's",
				   t->broker.shown, subject);
	}
	*ret_answer = answer;
	return OUTBOX_OK;
}

static int api_error(const json_t *answer, struct outbox_error *err)
{
	const json_t *error = json_object_get(answer, "error");
	const char *text = json_string_value(json_object_get(error, "description"));
	char shown[200];

	if (!error)
		return OUTBOX_OK;
	return outbox_fail_native(err, OUTBOX_EINVAL,
				  (int)json_integer_value(json_object_get(error, "err_code")),
				  "JetStream: %s",
				  text_shown(shown, sizeof(shown), text ? text : "an error"));
}

int nats_stream_names(struct nats_transport *t, const char *subject, outbox_time deadline,
		      struct stream_names *ret_names, struct outbox_error *err)
{
	json_auto_t *request = json_pack("{s:s}", "subject", subject);
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	json_t *answer = NULL;
	const json_t *streams;
	int r;

	if (!text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = ask(t, "$JS.API.STREAM.NAMES", text, deadline, &answer, err);
	free(text);
	if (r == OUTBOX_OK)
		r = api_error(answer, err);
	if (r == OUTBOX_OK) {
		streams = json_object_get(answer, "streams");
		ret_names->count = json_array_size(streams);
		for (size_t i = 0; i < ret_names->count && i < NATS_STREAMS_MAX; i++) {
			const char *name = json_string_value(json_array_get(streams, i));

			snprintf(ret_names->names[i], sizeof(ret_names->names[i]), "%s",
				 name ? name : "?");
		}
	}
	json_decref(answer);
	return r;
}

bool nats_stream_missing(struct nats_transport *t, const char *stream, outbox_time deadline)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	json_t *answer = NULL;
	char subject[300];
	int r;

	snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", stream);
	r = ask(t, subject, "", deadline, &answer, &err);
	if (r == OUTBOX_OK)
		r = api_error(answer, &err);
	json_decref(answer);
	return r == OUTBOX_EINVAL && err.native == STREAM_NOT_FOUND;
}

/* ---- what it means -------------------------------------------------------------------------------------- */

struct finding {
	enum level level;
	struct buf text;
};

static void add(struct finding *f, enum level level, const char *text)
{
	if (f->level < level)
		f->level = level;
	buf_printf(&f->text, "%s%s", f->text.size ? "; " : "", text);
}

static bool says(const json_t *config, const char *name, const char *value)
{
	const char *text = json_string_value(json_object_get(config, name));

	return text && strcmp(text, value) == 0;
}

static outbox_time duration_of(const json_t *config, const char *name)
{
	return json_integer_value(json_object_get(config, name)) / NANOSECONDS_PER_MICROSECOND;
}

static void judge_storage(const json_t *config, struct finding *f)
{
	json_int_t replicas = json_integer_value(json_object_get(config, "num_replicas"));
	char text[200];

	if (json_is_true(json_object_get(config, "no_ack")))
		add(f, LEVEL_ERROR, "it has no_ack and never acknowledges: every message times out");
	if (json_is_true(json_object_get(config, "sealed")))
		add(f, LEVEL_ERROR, "it is sealed and takes no more messages");
	if (says(config, "storage", "memory")) {
		add(f, replicas > 1 ? LEVEL_NOTE : LEVEL_WARNING,
		    replicas > 1
			    ? "an acknowledgement means in the memory of several servers: it is lost "
			      "when they restart together"
			    : "an acknowledgement means in the memory of one server: a restart loses it");
		return;
	}
	if (replicas > 1) {
		snprintf(text, sizeof(text),
			 "an acknowledgement means written to files by most of its %d replicas",
			 (int)replicas);
		add(f, LEVEL_OK, text);
		return;
	}
	add(f, LEVEL_NOTE,
	    "an acknowledgement means written to a file of one server, not yet synced: it survives a killed "
	    "server, not a power cut or the loss of the machine");
}

static void judge_limits(const json_t *config, struct finding *f)
{
	bool limited = json_integer_value(json_object_get(config, "max_msgs")) > 0 ||
		       json_integer_value(json_object_get(config, "max_bytes")) > 0 ||
		       json_integer_value(json_object_get(config, "max_msgs_per_subject")) > 0;
	outbox_time age = duration_of(config, "max_age"),
		    window = duration_of(config, "duplicate_window");
	char text[200], shown[DURATION_TEXT_MAX];

	if (limited && !says(config, "discard", "new"))
		add(f, LEVEL_WARNING,
		    "when it is full it drops its oldest messages, read or not (discard old)");
	if (age > 0) {
		snprintf(text, sizeof(text), "messages go after %s, read or not (max_age)",
			 duration_human(age, shown));
		add(f, LEVEL_NOTE, text);
	}
	if (window >= LONGEST_RETRY)
		return;
	snprintf(text, sizeof(text),
		 "repeats are recognised for %s (duplicate_window), a retry may come after 5 min",
		 duration_human(window, shown));
	add(f, LEVEL_NOTE, text);
}

/* A repeat is looked at (duplicates.c), which the user may not be allowed to. */
static int judge_duplicates(struct nats_transport *t, const char *stream, outbox_time deadline,
			    struct finding *f, struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	char subject[300], text[500];
	json_t *answer = NULL;
	int r;

	if (t->suffix)
		return OUTBOX_OK;
	snprintf(subject, sizeof(subject), NATS_MSG_GET "%s", stream);
	r = ask(t, subject, "{\"seq\":1}", deadline, &answer, &why);
	json_decref(answer);
	if (r == OUTBOX_OK)
		return OUTBOX_OK; /* also when there is no such message */
	if (r != OUTBOX_EAUTH && r != OUTBOX_ENOTFOUND && r != OUTBOX_ETIMEDOUT)
		return outbox_fail_native(err, r, why.native, "%s", why.message);
	snprintf(text, sizeof(text),
		 "it may not be asked for its messages (%s): a repeat is charged and sent again until the "
		 "duplicate window has passed; grant it, or add msg_id=target",
		 subject);
	add(f, LEVEL_WARNING, text);
	return OUTBOX_OK;
}

static int judge(struct nats_transport *t, const char *stream, outbox_time deadline,
		 struct finding *f, struct outbox_error *err)
{
	char subject[300], text[300];
	json_t *answer = NULL;
	const json_t *config;
	int r;

	snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", stream);
	r = ask(t, subject, "", deadline, &answer, err);
	if (r == OUTBOX_OK)
		r = api_error(answer, err);
	if (r == OUTBOX_OK) {
		config = json_object_get(answer, "config");
		snprintf(text, sizeof(text), "stream \"%s\"", stream);
		add(f, LEVEL_OK, text);
		judge_storage(config, f);
		judge_limits(config, f);
	}
	json_decref(answer);
	return r == OUTBOX_OK ? judge_duplicates(t, stream, deadline, f, err) : r;
}

/* ---- the op ----------------------------------------------------------------------------------------------- */

/* All subjects that the template can become: its words before the first place, then ">". */
static void subject_filter(const struct template *template, char *out, size_t size)
{
	struct buf text = BUF_INIT(NATS_SUBJECT_MAX);
	const char *dot;

	for (size_t i = 0; i < template->n_parts && template->parts[i].text; i++)
		buf_text(&text, template->parts[i].text);
	dot = strrchr(buf_str(&text), '.');
	if (template_is_constant(template))
		snprintf(out, size, "%s", buf_str(&text));
	else
		snprintf(out, size, "%.*s>", dot ? (int)(dot + 1 - text.data) : 0, buf_str(&text));
	buf_deinit(&text);
}

static bool names_has(const struct stream_names *names, const char *stream)
{
	for (size_t i = 0; i < names->count && i < NATS_STREAMS_MAX; i++)
		if (strcmp(names->names[i], stream) == 0)
			return true;
	return names->count > NATS_STREAMS_MAX; /* not all were looked at */
}

static int find_streams(struct nats_transport *t, outbox_time deadline,
			struct stream_names *ret_names, struct outbox_error *err)
{
	char filter[512];
	int r;

	subject_filter(&t->subject, filter, sizeof(filter));
	r = nats_stream_names(t, filter, deadline, ret_names, err);
	if (r == OUTBOX_ENOTFOUND)
		return outbox_fail(err, r, "JetStream does not answer; enable it (nats-server -js)");
	if (r != OUTBOX_OK)
		return r;
	if (t->stream && !names_has(ret_names, t->stream))
		return outbox_fail(err, OUTBOX_ENOTFOUND,
				   "stream \"%s\" is not there, or does not take the subjects "
				   "\"%s\": every message will be refused; create it, or add them to "
				   "its subjects",
				   t->stream, filter);
	if (ret_names->count == 0)
		return outbox_fail(
			err, OUTBOX_ENOTFOUND,
			"no stream takes the subjects \"%s\": every message will be refused; create "
			"one",
			filter);
	if (t->stream) {
		ret_names->count = 1;
		snprintf(ret_names->names[0], sizeof(ret_names->names[0]), "%s", t->stream);
	}
	return OUTBOX_OK;
}

int nats_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	struct nats_transport *t = nats_downcast(transport);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct stream_names streams = { .count = 0 };
	struct finding worst = { .level = LEVEL_OK };
	int r;

	if (t->wire.fd < 0) {
		snprintf(text, size, "not connected");
		return LEVEL_ERROR;
	}
	r = find_streams(t, deadline, &streams, &err);
	for (size_t i = 0; r == OUTBOX_OK && i < streams.count && i < NATS_STREAMS_MAX; i++) {
		struct finding f = { .text = BUF_INIT(2048) };

		r = judge(t, streams.names[i], deadline, &f, &err);
		if (i == 0 || f.level > worst.level) {
			struct finding other = worst;

			worst = f;
			f = other;
		}
		buf_deinit(&f.text);
	}
	if (r != OUTBOX_OK)
		snprintf(text, size, "%s", err.message);
	else
		snprintf(text, size, "%s%s", buf_str(&worst.text),
			 streams.count > 1 ? "; the target's other streams are no worse" : "");
	buf_deinit(&worst.text);
	return r != OUTBOX_OK ? LEVEL_ERROR : (int)worst.level;
}
