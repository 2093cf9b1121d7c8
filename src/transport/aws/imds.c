/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata service of a machine in AWS, version 2: a session's token, the role's name, and the role's credentials,
 * which end after some hours. Where there is no such machine nobody answers, so nobody is waited for long.
 */

#include "transport/aws/driver.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "core/json.h"
#include "core/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL "http://169.254.169.254"
#define ROLES "/latest/meta-data/iam/security-credentials/"
#define PATIENCE (2 * OUTBOX_SECONDS)
#define ANSWER_MAX ((size_t)16 << 10)
#define TTL "21600"

struct question {
	const char *endpoint, *method, *path, *rest; /* the URL is all but the method */
	const char *header, *value;
};

static size_t keep(char *data, size_t size, size_t count, void *context)
{
	struct buf *out = context;

	buf_append(out, data, size * count);
	return out->failed ? CURL_WRITEFUNC_ERROR : size * count;
}

#define SET(option_, value_) \
	failure = failure ? failure : curl_easy_setopt(handle, CURLOPT_##option_, value_)

static CURLcode perform(CURL *handle, const struct question *q, outbox_time wait, struct buf *out,
			long *ret_status)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(ANSWER_MAX);
	struct curl_slist *headers;
	CURLcode failure = web_set_manners(handle);

	buf_printf(&text, "%s: %s", q->header, q->value);
	headers = curl_slist_append(NULL, buf_str(&text));
	buf_clear(&text);
	buf_printf(&text, "%s%s%s", q->endpoint, q->path, q->rest);
	if (text.failed || !headers)
		failure = CURLE_OUT_OF_MEMORY;
	SET(URL, buf_str(&text));
	SET(CUSTOMREQUEST, q->method);
	SET(HTTPHEADER, headers);
	SET(TIMEOUT_MS, (long)(wait / OUTBOX_MILLISECONDS) + 1);
	SET(WRITEFUNCTION, keep);
	SET(WRITEDATA, out);
	failure = failure ? failure : curl_easy_perform(handle);
	curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, ret_status);
	curl_slist_free_all(headers);
	return failure;
}

static int ask(struct aws_transport *t, const struct question *q, outbox_time deadline,
	       struct buf *out, struct outbox_error *err)
{
	outbox_time left = broker_time_left(&t->broker, deadline);
	CURL *handle = left > 0 ? curl_easy_init() : NULL;
	CURLcode failure = CURLE_OPERATION_TIMEDOUT;
	long status = 0;

	buf_clear(out);
	if (handle)
		failure = perform(handle, q, left < PATIENCE ? left : PATIENCE, out, &status);
	curl_easy_cleanup(handle);
	if (failure)
		return outbox_fail_native(
			err, OUTBOX_EAUTH, (int)failure,
			"%s: no credentials: none in the target's URL, the environment "
			"(AWS_ACCESS_KEY_ID) or the file ~/.aws/credentials, and the machine's "
			"metadata service does not answer: %s",
			t->broker.shown, curl_easy_strerror(failure));
	if (status != 200)
		return outbox_fail_native(
			err, OUTBOX_EAUTH, (int)status,
			"%s: no credentials: the machine's metadata service says %ld%s",
			t->broker.shown, status, status == 404 ? "; give the machine a role" : "");
	return OUTBOX_OK;
}

/* ---- the answer ------------------------------------------------------------------------------------- */

static int take_member(const struct json_piece *name, const struct json_piece *value,
		       struct aws_credentials *out, struct outbox_error *err)
{
	static const char *const names[] = { "\"AccessKeyId\"", "\"SecretAccessKey\"", "\"Token\"",
					     "\"Expiration\"" };
	char *text, *expires = NULL,
		    **const members[] = { &out->id, &out->secret, &out->token, &expires };
	int r = OUTBOX_OK;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (name->size != strlen(names[i]) || memcmp(name->at, names[i], name->size) != 0 ||
		    value->at[0] != '"')
			continue;
		text = malloc(value->size);
		if (!text)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		if (json_string_read(value, text) || *members[i])
			free(text);
		else
			*members[i] = text;
	}
	if (expires)
		r = time_parse(expires, 0, &out->expires, err);
	free(expires);
	return r;
}

static int read_role(struct aws_transport *t, const struct buf *answer, struct aws_credentials *out,
		     struct outbox_error *err)
{
	struct json_piece name, value;
	struct json_members members;
	struct outbox_error cause;
	int r = json_text_check(buf_str(answer), answer->size, &cause);

	if (r || !json_members_begin(&members, answer->data, answer->size))
		r = OUTBOX_EINVAL;
	while (!r && json_members_next(&members, &name, &value))
		r = take_member(&name, &value, out, &cause);
	if (r == OUTBOX_ENOMEM)
		return outbox_fail(err, r, "out of memory");
	if (r || !out->id || !out->secret || !out->expires)
		return outbox_fail(err, OUTBOX_EAUTH,
				   "%s: the machine's metadata service has no credentials for its role; "
				   "look at the role",
				   t->broker.shown);
	return OUTBOX_OK;
}

int aws_imds_read(struct aws_transport *t, outbox_time deadline, struct aws_credentials *ret,
		  struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf token = BUF_INIT(ANSWER_MAX), role = BUF_INIT(ANSWER_MAX),
					 answer = BUF_INIT(ANSWER_MAX);
	const char *endpoint = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	const char *disabled = getenv("AWS_EC2_METADATA_DISABLED");
	struct question q = { .endpoint = endpoint && endpoint[0] ? endpoint : USUAL };
	int r;

	if (disabled && strcasecmp(disabled, "true") == 0)
		return outbox_fail(err, OUTBOX_EAUTH,
				   "%s: no credentials: none in the target's URL, the environment "
				   "(AWS_ACCESS_KEY_ID) or the file ~/.aws/credentials",
				   t->broker.shown);
	q.method = "PUT";
	q.path = "/latest/api/token";
	q.rest = "";
	q.header = "X-aws-ec2-metadata-token-ttl-seconds";
	q.value = TTL;
	r = ask(t, &q, deadline, &token, err);
	q.method = "GET";
	q.path = ROLES;
	q.header = "X-aws-ec2-metadata-token";
	q.value = buf_str(&token);
	if (!r)
		r = ask(t, &q, deadline, &role, err);
	/* one a line; the first is the machine's */
	q.rest = buf_str(&role);
	if (role.data)
		role.data[strcspn(role.data, "\r\n")] = '\0';
	if (!r)
		r = ask(t, &q, deadline, &answer, err);
	if (!r)
		r = read_role(t, &answer, ret, err);
	if (answer.data)
		explicit_bzero(answer.data, answer.size);
	return r;
}
