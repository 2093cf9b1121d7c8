/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/broker.h"

#include "base/cleanup.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_endpoint(struct broker *broker, const struct broker_driver *driver, struct url *url,
			struct outbox_error *err)
{
	bool tls = strcmp(url->scheme, driver->ops->schemes[0]) != 0;
	int r = endpoint_parse(url, url_usual_port(url->scheme), tls, &broker->endpoint, err);

	snprintf(broker->shown, sizeof(broker->shown), "%s %s", driver->title,
		 broker->endpoint.shown);
	return r;
}

static int set_envelope(struct broker *broker, const struct broker_driver *driver, int envelope,
			struct outbox_error *err)
{
	int r;

	if (envelope || !broker->envelope)
		broker->envelope = envelope ? envelope : OUTBOX_ENVELOPE_CE_BINARY;
	r = outbox_encoder_new(broker->envelope, driver->attribute_prefix, &broker->encoder, err);
	if (r != OUTBOX_EINVAL)
		return r;
	if (err)
		err->status = OUTBOX_ECONFIG;
	return OUTBOX_ECONFIG;
}

int broker_open(const struct broker_driver *driver, const struct outbox_transport_config *config,
		struct outbox_transport **ret_transport, struct outbox_error *err)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	struct broker *broker;
	int r = url_parse(config->url, &url, err);

	if (r != OUTBOX_OK)
		return r;
	broker = calloc(1, driver->size);
	if (!broker)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	broker->base.ops = driver->ops;
	broker->clock = config->clock;
	snprintf(broker->client, sizeof(broker->client), "outbox %s",
		 config->target ? config->target : "");
	r = set_endpoint(broker, driver, &url, err);
	if (r != OUTBOX_OK) {
		broker_close(broker);
		return r;
	}
	r = driver->configure(broker, &url, config, err);
	if (r == OUTBOX_OK)
		r = url_finish(&url, driver->options, err);
	if (r == OUTBOX_OK)
		r = set_envelope(broker, driver, config->envelope, err);
	if (r != OUTBOX_OK) {
		driver->ops->close(&broker->base);
		return r;
	}
	*ret_transport = &broker->base;
	return OUTBOX_OK;
}

void broker_close(struct broker *broker)
{
	endpoint_deinit(&broker->endpoint);
	outbox_encoder_free(broker->encoder);
	free(broker);
}

outbox_time broker_time_left(const struct broker *broker, outbox_time deadline)
{
	return deadline - broker->clock->mono(broker->clock);
}

void findings_add(struct findings *findings, enum finding level, const char *format, ...)
{
	char text[600];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	buf_printf(&findings->text, "%s%s", findings->text.size ? "; " : "", text);
	if (level > findings->worst)
		findings->worst = level;
}

int findings_finish(struct findings *findings, int r, const struct outbox_error *err, char *text,
		    size_t size)
{
	snprintf(text, size, "%s", r ? err->message : buf_str(&findings->text));
	buf_deinit(&findings->text);
	return r ? FINDING_ERROR : (int)findings->worst;
}

int broker_ready(const struct broker *broker, bool connected, outbox_time deadline,
		 struct outbox_error *err)
{
	if (!connected)
		return outbox_fail(err, OUTBOX_ECONN, "%s: not connected", broker->shown);
	if (broker_time_left(broker, deadline) <= 0)
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: the deadline has passed",
				   broker->shown);
	return OUTBOX_OK;
}
