/* SPDX-License-Identifier: Apache-2.0 */
/* What the URL says. */

#include "transport/redis/driver.h"

#include "base/text.h"

#define STREAM_MAX 4096 /* bytes; far more than anybody can read */

static int set_database(struct redis_transport *t, const struct url *url, struct outbox_error *err)
{
	const char *path = url->path + (url->path[0] == '/');

	if (!path[0] || number_parse("the path (a database's number)", path, 0, 1000000,
				     &t->database, err) == OUTBOX_OK)
		return OUTBOX_OK;
	if (err)
		err->status = OUTBOX_ECONFIG;
	return OUTBOX_ECONFIG;
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
	bool exact_given = url_option(url, "maxlen_exact");
	int r = url_flag(url, "maxlen_exact", &t->maxlen_exact, err);

	t->create = true;
	if (!r)
		r = url_flag(url, "create", &t->create, err);
	if (!r)
		r = url_number(url, "maxlen", 1, INT64_MAX, &t->maxlen, err);
	if (!r)
		r = url_number(url, "wait", 0, REDIS_REPLICAS_MAX, &t->replicas, err);
	if (!r && exact_given && !t->maxlen)
		r = outbox_fail(err, OUTBOX_ECONFIG,
				"option maxlen_exact says how maxlen=N is kept; give maxlen too");
	return r;
}

int redis_configure(struct broker *broker, struct url *url,
		    const struct outbox_transport_config *config, struct outbox_error *err)
{
	struct redis_transport *t = redis_downcast(&broker->base);
	int r;

	t->key = (struct buf)BUF_INIT(STREAM_MAX);
	t->words = t->streams = (struct buf)BUF_INIT(SIZE_MAX / 2);
	t->unordered = config->unordered;
	redis_wire_init(&t->wire, config->clock);
	snprintf(t->client, sizeof(t->client), "outbox:%s", config->target);
	if (broker->endpoint.user && !broker->endpoint.password)
		return outbox_fail_detail(err, OUTBOX_ECONFIG, OUTBOX_DETAIL_PASSWORD,
					  "redis: a user without a password; write user:password@, "
					  "or add password_file=PATH");
	r = set_database(t, url, err);
	if (!r)
		r = set_stream(t, url, config->target, err);
	return r ? r : set_options(t, url, err);
}
