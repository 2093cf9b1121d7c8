/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/nats/verdict.h"

#include "base/cleanup.h"
#include "core/json.h"
#include "core/message.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool is(const struct json_piece *name, const char *text)
{
	size_t length = strlen(text);

	return name->size == length + 2 && memcmp(name->at + 1, text, length) == 0;
}

/* A string that fits; false: something else. */
static bool read_text(const struct json_piece *value, char *out, size_t size)
{
	return value->at[0] == '"' && value->size <= size && !json_string_read(value, out);
}

/* A whole number that is not negative; -1: something else. */
static long long read_number(const struct json_piece *value)
{
	long long number = 0;

	for (size_t i = 0; i < value->size; i++) {
		if (value->at[i] < '0' || value->at[i] > '9' || number > LLONG_MAX / 10 - 10)
			return -1;
		number = 10 * number + value->at[i] - '0';
	}
	return value->size ? number : -1;
}

/* {"code":503,"err_code":10077,"description":"maximum messages exceeded"} */
static void read_error(const struct json_piece *error, struct answer *answer)
{
	struct json_members members;
	struct json_piece name, value;
	long long code = 0;

	answer->code = -1; /* an error, whatever else it says */
	snprintf(answer->description, sizeof(answer->description), "an error without a description");
	if (!json_members_begin(&members, error->at, error->size))
		return;
	while (json_members_next(&members, &name, &value)) {
		if (is(&name, "err_code"))
			code = read_number(&value);
		else if (is(&name, "description") &&
			 !read_text(&value, answer->description, sizeof(answer->description)))
			snprintf(answer->description, sizeof(answer->description),
				 "an error with a strange description");
	}
	if (code > 0 && code <= INT_MAX)
		answer->code = (int)code;
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
 * {"stream":"ORDERS", "seq":42}, to the letter: what nearly every answer is. False: read it in the long way.
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

/* An answer may be anything, and nothing. */
static bool is_object(const char *json, size_t size, struct json_members *ret_members)
{
	return json_text_check(json ? json : "", size, NULL) == OUTBOX_OK &&
	       json_members_begin(ret_members, json, size);
}

int answer_parse(const char *json, size_t size, struct answer *ret_answer, struct outbox_error *err)
{
	struct answer answer = { 0 };
	struct json_members members;
	struct json_piece name, value;

	if (parse_plain(json, size, &answer)) {
		*ret_answer = answer;
		return OUTBOX_OK;
	}
	if (!is_object(json, size, &members))
		return not_jetstreams("no JSON object", err);
	while (json_members_next(&members, &name, &value)) {
		if (is(&name, "error") && value.at[0] != 'n')
			read_error(&value, &answer);
		else if (is(&name, "stream") &&
			 !read_text(&value, answer.stream, sizeof(answer.stream)))
			return not_jetstreams("a strange stream", err);
		else if (is(&name, "seq"))
			answer.seq = read_number(&value);
		else if (is(&name, "duplicate"))
			answer.duplicate = value.at[0] == 't';
	}
	if (!answer.code && (!answer.stream[0] || answer.seq <= 0))
		return not_jetstreams("it names no stream and sequence", err);
	*ret_answer = answer;
	return OUTBOX_OK;
}

/* ---- stored messages ---------------------------------------------------------------------------------- */

static bool read_subject(const struct json_piece *message, char *out, size_t size)
{
	struct json_members members;
	struct json_piece name, value;

	if (!json_members_begin(&members, message->at, message->size))
		return false;
	while (json_members_next(&members, &name, &value))
		if (is(&name, "subject"))
			return read_text(&value, out, size) && out[0];
	return false;
}

int stored_parse(const char *json, size_t size, char *ret_subject, size_t subject_size,
		 struct outbox_error *err)
{
	struct answer answer = { 0 };
	struct json_members members;
	struct json_piece name, value;
	bool found = false;

	if (!is_object(json, size, &members))
		return not_jetstreams("no JSON object", err);
	while (json_members_next(&members, &name, &value)) {
		if (is(&name, "error") && value.at[0] != 'n')
			read_error(&value, &answer);
		else if (is(&name, "message"))
			found = read_subject(&value, ret_subject, subject_size);
	}
	if (answer.code)
		return outbox_fail_native(err, OUTBOX_ENOTFOUND, answer.code, "JetStream: %s (%d)",
					  answer.description, answer.code);
	return found ? OUTBOX_OK : not_jetstreams("it names no subject", err);
}
