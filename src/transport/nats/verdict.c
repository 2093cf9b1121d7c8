/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/nats/verdict.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

/* ---- the table ------------------------------------------------------------------------------------ */

static const struct {
	int code;
	enum verdict_class class;
} table[] = {
	{ 10002, CLASS_FULL },  /* resource limits exceeded for account */
	{ 10003, CLASS_RETRY }, /* bad request */
	{ 10004, CLASS_AWAY },  /* incomplete results */
	{ 10005, CLASS_AWAY },  /* no suitable peers for placement */
	{ 10007, CLASS_AWAY },  /* JetStream cluster not assigned to this server */
	{ 10008, CLASS_AWAY },  /* JetStream system temporarily unavailable */
	{ 10009, CLASS_AWAY },  /* JetStream cluster can not handle request: no leader */
	{ 10023, CLASS_FULL },  /* insufficient resources */
	{ 10028, CLASS_FULL },  /* insufficient memory resources available */
	{ 10035, CLASS_AWAY },  /* account not found */
	{ 10039, CLASS_AWAY },  /* JetStream not enabled for account */
	{ 10041, CLASS_AWAY },  /* general RAFT error */
	{ 10047, CLASS_FULL },  /* insufficient storage resources available */
	{ 10051, CLASS_AWAY },  /* general stream failure */
	{ 10053, CLASS_FULL },  /* stream limits exceeded */
	{ 10054, CLASS_REJECT }, /* message size exceeds maximum allowed: the stream's max_msg_size */
	{ 10060, CLASS_PLACE }, /* expected stream does not match: the subject belongs to another one */
	{ 10063, CLASS_AWAY },  /* expected stream sequence does not match: between its replicas */
	{ 10070, CLASS_RETRY }, /* wrong last message id */
	{ 10071, CLASS_RETRY }, /* wrong last sequence */
	{ 10076, CLASS_AWAY },  /* JetStream not enabled */
	{ 10077, CLASS_FULL }, /* storing failed: maximum messages or bytes exceeded, a full disk */
	{ 10097, CLASS_REJECT }, /* header size exceeds maximum allowed of 64k */
	{ 10109, CLASS_PLACE },  /* sealed stream */
	{ 10118, CLASS_AWAY },   /* stream is offline */
	{ 10158, CLASS_RETRY },  /* duplicate message id is in process (2.11) */
	{ 10167, CLASS_AWAY },   /* too many requests (2.11) */
};

enum verdict_class verdict_of(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].code == code)
			return table[i].class;
	return CLASS_RETRY;
}

/* ---- answers ---------------------------------------------------------------------------------------- */

/* A copy of a text that fits; false: there is none. */
static bool read_text(const json_t *object, const char *name, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && (size_t)snprintf(out, size, "%s", text) < size;
}

/* {"code":503,"err_code":10077,"description":"maximum messages exceeded"} */
static void read_error(const json_t *error, struct answer *answer)
{
	json_int_t code = json_integer_value(json_object_get(error, "err_code"));

	answer->code = code > 0 && code <= INT_MAX ? (int)code : -1;
	if (!read_text(error, "description", answer->description, sizeof(answer->description)))
		snprintf(answer->description, sizeof(answer->description),
			 "an error without a description");
}

/* Behind the text, when it stands here; else NULL. */
static const char *skip(const char *at, const char *end, const char *text)
{
	size_t length = strlen(text);

	return at && (size_t)(end - at) >= length && memcmp(at, text, length) == 0 ? at + length
										   : NULL;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/*
 * {"stream":"ORDERS", "seq":42}, to the letter: what nearly every answer is. False: jansson reads it.
 * The name is nothing but letters, digits, - and _, so that there is nothing to decode.
 */
static bool parse_plain(const char *json, size_t size, struct answer *answer)
{
	const char *end = json + size, *name = skip(json, end, "{\"stream\":\""), *at = name, *seq;
	size_t length;

	while (at && at < end && is_name(*at))
		at++;
	length = at ? (size_t)(at - name) : 0;
	if (length == 0 || length >= sizeof(answer->stream))
		return false;
	seq = at = skip(at, end, "\", \"seq\":");
	while (at && at < end && isdigit((unsigned char)*at))
		at++;
	if (!at || at == seq || *seq == '0' || skip(at, end, "}") != end)
		return false;
	memcpy(answer->stream, name, length);
	return true;
}

static int not_jetstreams(const char *why, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EPROTO, "the answer is not JetStream's: %s", why);
}

/* What JetStream answered, with its error if that is what it is. NULL: the answer is no object. */
static json_t *read_answer(const char *json, size_t size, struct answer *answer)
{
	json_t *object = json_loadb(json ? json : "", size, 0, NULL);
	const json_t *error = json_object_get(object, "error");

	if (error && !json_is_null(error))
		read_error(error, answer);
	if (json_is_object(object))
		return object;
	json_decref(object);
	return NULL;
}

int answer_parse(const char *json, size_t size, struct answer *ret_answer, struct outbox_error *err)
{
	struct answer answer = { 0 };
	json_auto_t *object = NULL;

	if (parse_plain(json, size, &answer)) {
		*ret_answer = answer;
		return OUTBOX_OK;
	}
	object = read_answer(json, size, &answer);
	if (!object)
		return not_jetstreams("no JSON object", err);
	answer.seq = json_integer_value(json_object_get(object, "seq"));
	answer.duplicate = json_is_true(json_object_get(object, "duplicate"));
	if (!answer.code && (!read_text(object, "stream", answer.stream, sizeof(answer.stream)) ||
			     !answer.stream[0] || answer.seq <= 0))
		return not_jetstreams("it names no stream and sequence", err);
	*ret_answer = answer;
	return OUTBOX_OK;
}

int stored_parse(const char *json, size_t size, char *ret_subject, size_t subject_size,
		 struct outbox_error *err)
{
	struct answer answer = { 0 };
	json_auto_t *object = read_answer(json, size, &answer);

	if (!object)
		return not_jetstreams("no JSON object", err);
	if (answer.code)
		return outbox_fail_native(err, OUTBOX_ENOTFOUND, answer.code, "JetStream: %s (%d)",
					  answer.description, answer.code);
	return read_text(json_object_get(object, "message"), "subject", ret_subject, subject_size) &&
			       ret_subject[0]
		       ? OUTBOX_OK
		       : not_jetstreams("it names no subject", err);
}
