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

/* ---- the API ------------------------------------------------------------------------------------------ */

#define STREAM_NOT_FOUND 10059

static int check_error(const json_t *answer, struct outbox_error *err)
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

/* EINVAL: JetStream answers with an error, whose code is native. */
static int ask(struct nats_transport *t, const char *subject, const char *json,
	       outbox_time deadline, json_t **ret_answer, struct outbox_error *err)
{
	_cleanup_(cleanup_free) char *text = NULL;
	json_auto_t *answer = NULL;
	int r = pump_request(t, subject, json, deadline, &text, err);

	if (r != OUTBOX_OK)
		return r;
	answer = json_loads(text, 0, NULL);
	if (!json_is_object(answer))
		return outbox_fail(err, OUTBOX_EPROTO, "%s: the answer to %s is not JetStream's",
				   t->broker.shown, subject);
	r = check_error(answer, err);
	if (r == OUTBOX_OK)
		*ret_answer = json_incref(answer);
	return r;
}

static int ask_for_stream(struct nats_transport *t, const char *stream, outbox_time deadline,
			  json_t **ret_answer, struct outbox_error *err)
{
	char subject[300];

	snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", stream);
	return ask(t, subject, "", deadline, ret_answer, err);
}

int nats_stream_names(struct nats_transport *t, const char *subject, outbox_time deadline,
		      struct stream_names *ret_names, struct outbox_error *err)
{
	json_auto_t *request = json_pack("{s:s}", "subject", subject), *answer = NULL;
	_cleanup_(cleanup_free) char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	const json_t *streams;
	int r;

	if (!text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = ask(t, "$JS.API.STREAM.NAMES", text, deadline, &answer, err);
	if (r != OUTBOX_OK)
		return r;
	streams = json_object_get(answer, "streams");
	ret_names->count = json_array_size(streams);
	for (size_t i = 0; i < ret_names->count && i < NATS_STREAMS_MAX; i++) {
		const char *name = json_string_value(json_array_get(streams, i));

		snprintf(ret_names->names[i], sizeof(ret_names->names[i]), "%s", name ? name : "?");
	}
	return OUTBOX_OK;
}

bool nats_stream_missing(struct nats_transport *t, const char *stream, outbox_time deadline)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	json_auto_t *answer = NULL;

	return ask_for_stream(t, stream, deadline, &answer, &err) == OUTBOX_EINVAL &&
	       err.native == STREAM_NOT_FOUND;
}

/* ---- what it means -------------------------------------------------------------------------------------- */

static bool says(const json_t *config, const char *name, const char *value)
{
	const char *text = json_string_value(json_object_get(config, name));

	return text && strcmp(text, value) == 0;
}

static outbox_time duration_of(const json_t *config, const char *name)
{
	return json_integer_value(json_object_get(config, name)) / NANOSECONDS_PER_MICROSECOND;
}

static void judge_storage(const json_t *config, struct findings *f)
{
	json_int_t replicas = json_integer_value(json_object_get(config, "num_replicas"));

	if (json_is_true(json_object_get(config, "no_ack")))
		findings_add(f, FINDING_ERROR,
			     "it has no_ack and never acknowledges: every message times out");
	if (json_is_true(json_object_get(config, "sealed")))
		findings_add(f, FINDING_ERROR, "it is sealed and accepts no more messages");
	if (says(config, "storage", "memory")) {
		if (replicas > 1)
			findings_add(f, FINDING_NOTE,
				     "an acknowledged message is in the memory of several servers: it is "
				     "lost when they restart together");
		else
			findings_add(f, FINDING_WARNING,
				     "an acknowledged message is in the memory of one server: a restart "
				     "loses it");
	} else if (replicas > 1) {
		findings_add(f, FINDING_OK,
			     "an acknowledged message is written to files by most of its %d replicas",
			     (int)replicas);
	} else {
		findings_add(f, FINDING_NOTE,
			     "an acknowledged message is written to a file of one server, not yet synced: it survives a killed "
			     "server, not a power cut or the loss of the machine");
	}
}

static void judge_limits(const json_t *config, struct findings *f)
{
	bool limited = json_integer_value(json_object_get(config, "max_msgs")) > 0 ||
		       json_integer_value(json_object_get(config, "max_bytes")) > 0 ||
		       json_integer_value(json_object_get(config, "max_msgs_per_subject")) > 0;
	outbox_time age = duration_of(config, "max_age"),
		    window = duration_of(config, "duplicate_window");
	char shown[DURATION_TEXT_MAX];

	if (limited && !says(config, "discard", "new"))
		findings_add(f, FINDING_WARNING,
			     "when it is full it drops its oldest messages, read or not (discard old)");
	if (age > 0)
		findings_add(f, FINDING_NOTE, "messages are removed after %s, read or not (max_age)",
			     duration_human(age, shown));
	if (window < LONGEST_RETRY)
		findings_add(f, FINDING_NOTE,
			     "repeats are recognised for %s (duplicate_window), a retry may come after "
			     "5 min",
			     duration_human(window, shown));
}

/* A repeat is looked at (duplicates.c), which the user may not be allowed to. */
static int judge_duplicates(struct nats_transport *t, const char *stream, outbox_time deadline,
			    struct findings *f, struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	json_auto_t *answer = NULL;
	char subject[300];
	int r;

	if (t->suffix)
		return OUTBOX_OK;
	snprintf(subject, sizeof(subject), NATS_MSG_GET "%s", stream);
	r = ask(t, subject, "{\"seq\":1}", deadline, &answer, &why);
	if (r == OUTBOX_OK || r == OUTBOX_EINVAL)
		return OUTBOX_OK; /* it answers, be it that there is no such message */
	if (r != OUTBOX_EAUTH && r != OUTBOX_ENOTFOUND && r != OUTBOX_ETIMEDOUT)
		return outbox_fail_native(err, r, why.native, "%s", why.message);
	findings_add(f, FINDING_WARNING,
		     "it may not be asked for its messages (%s): a repeat is charged and sent again until "
		     "the duplicate window has passed; grant it, or add msg_id=target",
		     subject);
	return OUTBOX_OK;
}

static int judge(struct nats_transport *t, const char *stream, outbox_time deadline,
		 struct findings *f, struct outbox_error *err)
{
	json_auto_t *answer = NULL;
	const json_t *config;
	int r = ask_for_stream(t, stream, deadline, &answer, err);

	if (r != OUTBOX_OK)
		return r;
	config = json_object_get(answer, "config");
	findings_add(f, FINDING_OK, "stream \"%s\"", stream);
	judge_storage(config, f);
	judge_limits(config, f);
	return judge_duplicates(t, stream, deadline, f, err);
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
				   "stream \"%s\" does not exist, or does not accept the subjects "
				   "\"%s\": every message will be refused; create it, or add them to "
				   "its subjects",
				   t->stream, filter);
	if (ret_names->count == 0)
		return outbox_fail(
			err, OUTBOX_ENOTFOUND,
			"no stream accepts the subjects \"%s\": every message will be refused; create "
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
	struct findings shown = FINDINGS_INIT;
	int r = broker_ready(&t->broker, t->wire.fd >= 0, deadline, &err);

	if (r == OUTBOX_OK)
		r = find_streams(t, deadline, &streams, &err);
	for (size_t i = 0; r == OUTBOX_OK && i < streams.count && i < NATS_STREAMS_MAX; i++) {
		struct findings f = FINDINGS_INIT;

		r = judge(t, streams.names[i], deadline, &f, &err);
		if (i == 0 || f.worst > shown.worst) {
			struct findings other = shown;

			shown = f;
			f = other;
		}
		buf_deinit(&f.text);
	}
	if (streams.count > 1)
		findings_add(&shown, FINDING_OK, "the target's other streams are at least as safe");
	return findings_finish(&shown, r, &err, text, size);
}
