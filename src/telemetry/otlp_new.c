/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/otlp_parts.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define URL_MAX_BYTES ((size_t)16 << 10)

static char *url_of(const char *endpoint, const char *path)
{
	_cleanup_(buf_deinit) struct buf url = BUF_INIT(URL_MAX_BYTES);
	size_t size = strlen(endpoint);

	while (size > 0 && endpoint[size - 1] == '/')
		size--;
	buf_append(&url, endpoint, size);
	buf_text(&url, path);
	return url.failed ? NULL : strdup(buf_str(&url));
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "Name: value", the value's %41 decoded; what would be a control character stays as it is. */
static char *header_of(const struct otlp_header *h)
{
	char *text = malloc(h->name_size + h->value_size + 3), *out = text;

	if (!text)
		return NULL;
	memcpy(out, h->name, h->name_size);
	out += h->name_size;
	*out++ = ':';
	*out++ = ' ';
	for (size_t i = 0; i < h->value_size; i++) {
		int high = h->value[i] == '%' && i + 2 < h->value_size ? hex_value(h->value[i + 1])
								       : -1;
		int low = high >= 0 ? hex_value(h->value[i + 2]) : -1;
		int byte = low >= 0 ? high * 16 + low : 0;

		if (byte >= ' ' && byte != 0x7f) {
			*out++ = (char)byte;
			i += 2;
		} else {
			*out++ = h->value[i];
		}
	}
	*out = '\0';
	return text;
}

static bool copy_headers(struct otlp *o, const char *headers)
{
	struct otlp_header h;
	size_t n = 0;

	for (const char *rest = headers; otlp_header_next(&rest, &h);)
		n++;
	o->headers = calloc(n + 1, sizeof(*o->headers));
	if (!o->headers)
		return false;
	n = 0;
	for (const char *rest = headers; otlp_header_next(&rest, &h);) {
		o->headers[n] = header_of(&h);
		if (!o->headers[n++])
			return false;
	}
	return true;
}

static void name_sender(struct otlp *o, const char *instance)
{
	char host[65] = "host";

	o->sender.started = o->clock->wall(o->clock);
	if (instance) {
		snprintf(o->sender.instance, sizeof(o->sender.instance), "%s", instance);
		return;
	}
	if (gethostname(host, sizeof(host) - 1))
		snprintf(host, sizeof(host), "host");
	snprintf(o->sender.instance, sizeof(o->sender.instance), "%s:%ld", host, (long)getpid());
}

int otlp_new(const struct config_otlp *config, const char *instance, const struct log *log,
	     struct otlp **ret_otlp, struct outbox_error *err)
{
	struct otlp *o = calloc(1, sizeof(*o));
	int r = OUTBOX_OK;

	if (!o)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	o->metrics = config->metrics;
	o->traces = config->traces;
	o->interval = config->interval;
	o->log = *log;
	o->clock = outbox_clock_system();
	atomic_init(&o->until, OUTBOX_NEVER);
	random_init(&o->random, random_system_seed());
	otlp_ring_init(&o->ring);
	name_sender(o, instance);
	o->metrics_url = url_of(config->endpoint, "/v1/metrics");
	o->traces_url = url_of(config->endpoint, "/v1/traces");
	if (!o->metrics_url || !o->traces_url ||
	    !copy_headers(o, config->headers ? config->headers : ""))
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!r)
		r = post_new(&o->post, err);
	if (!r)
		r = waiting_init(&o->waiting, err);
	o->can_wait = !r;
	if (r) {
		otlp_free(o);
		return r;
	}
	otlp_exists();
	*ret_otlp = o;
	return OUTBOX_OK;
}

struct otlp *otlp_free(struct otlp *o)
{
	if (!o)
		return NULL;
	otlp_stop(o);
	if (o->can_wait)
		waiting_deinit(&o->waiting);
	post_free(o->post);
	for (size_t i = 0; o->headers && o->headers[i]; i++)
		secret_free(o->headers[i]);
	free(o->headers);
	free(o->metrics_url);
	free(o->traces_url);
	free(o);
	return NULL;
}
