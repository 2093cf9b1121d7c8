/* SPDX-License-Identifier: Apache-2.0 */
/* What the URL says. */

#include "transport/redis/driver.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define OPTIONS "stream, maxlen, maxlen_exact, create, wait, password_file"

static int check_scheme(const struct url *url, struct outbox_error *err)
{
	if (strcmp(url->scheme, "rediss") != 0)
		return OUTBOX_OK;
	return outbox_fail(
		err, OUTBOX_ECONFIG,
		"rediss: this build's Redis library has no TLS that verifies the server; "
		"run stunnel (or another local TLS proxy) and write redis://127.0.0.1:PORT/");
}

static int set_login(struct redis_transport *t, struct url *url, struct outbox_error *err)
{
	int r = endpoint_parse(url, 6379, false, &t->endpoint, err);

	if (!r && t->endpoint.user && !t->endpoint.password)
		return outbox_fail_detail(err, OUTBOX_ECONFIG, OUTBOX_DETAIL_PASSWORD,
					  "redis: a user without a password; write user:password@, "
					  "or add password_file=PATH");
	return r;
}

static int set_number(const char *what, const char *text, int64_t min, int64_t max,
		      int64_t *ret_number, struct outbox_error *err)
{
	if (number_parse(what, text, min, max, ret_number, err) == OUTBOX_OK)
		return OUTBOX_OK;
	if (err)
		err->status = OUTBOX_ECONFIG;
	return OUTBOX_ECONFIG;
}

static int set_database(struct redis_transport *t, const struct url *url, struct outbox_error *err)
{
	const char *path = url->path[0] == '/' ? url->path + 1 : url->path;

	return path[0] ? set_number("the path (a database's number)", path, 0, 1000000,
				    &t->database, err)
		       : OUTBOX_OK;
}

static int set_flag(struct url *url, const char *name, bool standard, bool *ret_flag,
		    struct outbox_error *err)
{
	const char *value = url_option(url, name);
	char shown[80];

	if (value && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return outbox_fail(err, OUTBOX_ECONFIG, "option %s: \"%s\" is neither yes nor no",
				   name, text_shown(shown, sizeof(shown), value));
	*ret_flag = value ? strcmp(value, "yes") == 0 : standard;
	return OUTBOX_OK;
}

static int set_stream(struct redis_transport *t, struct url *url, const char *target,
		      struct outbox_error *err)
{
	const char *stream = url_option(url, "stream");
	int r;

	if (stream && !stream[0])
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "option stream: is empty; write stream=orders or stream={type}");
	r = template_parse("stream", stream ? stream : target, &t->stream, err);
	if (r)
		return r;
	t->fixed = template_is_constant(&t->stream);
	return t->fixed ? template_render(&t->stream, NULL, &t->key, err) : OUTBOX_OK;
}

static int set_options(struct redis_transport *t, struct url *url, struct outbox_error *err)
{
	const char *maxlen = url_option(url, "maxlen"), *replicas = url_option(url, "wait");
	bool exact_given = url_option(url, "maxlen_exact");
	int r = set_flag(url, "maxlen_exact", false, &t->maxlen_exact, err);

	if (!r)
		r = set_flag(url, "create", true, &t->create, err);
	if (!r && maxlen)
		r = set_number("option maxlen", maxlen, 1, INT64_MAX, &t->maxlen, err);
	if (!r && replicas)
		r = set_number("option wait", replicas, 0, REDIS_REPLICAS_MAX, &t->replicas, err);
	if (!r && exact_given && !maxlen)
		r = outbox_fail(err, OUTBOX_ECONFIG,
				"option maxlen_exact says how maxlen=N is kept; give maxlen too");
	return r ? r : url_finish(url, OPTIONS, err);
}

static int set_envelope(struct redis_transport *t, int envelope, struct outbox_error *err)
{
	int r;

	t->envelope = envelope ? envelope : OUTBOX_ENVELOPE_CE_BINARY;
	r = outbox_encoder_new(t->envelope, "", &t->encoder, err);
	if (r == OUTBOX_EINVAL && err)
		err->status = OUTBOX_ECONFIG;
	return r == OUTBOX_EINVAL ? OUTBOX_ECONFIG : r;
}

int redis_options(struct redis_transport *t, const struct outbox_transport_config *config,
		  struct outbox_error *err)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	int r;

	r = url_parse(config->url, &url, err);
	if (!r)
		r = check_scheme(&url, err);
	if (!r)
		r = set_login(t, &url, err);
	if (!r)
		r = set_database(t, &url, err);
	if (!r)
		r = set_stream(t, &url, config->target, err);
	if (!r)
		r = set_options(t, &url, err);
	if (!r)
		r = set_envelope(t, config->envelope, err);
	snprintf(t->client, sizeof(t->client), "outbox:%s", config->target);
	return r;
}
