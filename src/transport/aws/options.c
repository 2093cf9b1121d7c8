/* SPDX-License-Identifier: Apache-2.0 */
/* What the URL says: that of a queue with another scheme, and options behind it. */

#include "transport/aws/driver.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_IN_FLIGHT 4
#define DEFAULT_TIMEOUT (15 * OUTBOX_SECONDS)
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
#define NAME_MAX_CHARS 256

static bool is_name(const char *text)
{
	size_t length = strspn(text, NAME_CHARS);

	if (!length || strlen(text) > NAME_MAX_CHARS)
		return false;
	return !text[length] || strcmp(text + length, ".fifo") == 0;
}

/* ---- where ------------------------------------------------------------------------------------------ */

static int set_place(struct aws_transport *t, const struct url *url, struct outbox_error *err)
{
	const char *path = url->path + (url->path[0] == '/');
	size_t length = strcspn(path, "/");
	char account[64], shown[160];
	const char *name = path[length] ? path + length + 1 : "";

	snprintf(account, sizeof(account), "%.*s", (int)length, path);
	if (!is_name(account) || !is_name(name) || strchr(account, '.'))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "\"%s\" is not an account and a name; write %s://HOST/ACCOUNT/NAME, "
				   "such as %s://%s.eu-west-1.amazonaws.com/123456789012/orders",
				   text_shown(shown, sizeof(shown), url->path), t->service->name,
				   t->service->name, t->service->name);
	t->fifo = strchr(name, '.');
	return t->service->set_place(t, account, name, err);
}

/* As curl writes it, too: without the scheme's usual port. */
static int set_url(struct aws_transport *t, struct outbox_error *err)
{
	const struct endpoint *e = &t->broker.endpoint;
	const struct address *address = &e->addresses[0];
	const char *open = strchr(address->host, ':') ? "[" : "", *close = *open ? "]" : "";
	char port[16] = "";

	if (e->n_addresses != 1)
		return outbox_fail(err, OUTBOX_ECONFIG, "has several hosts; name one");
	if (address->port != (e->tls ? 443 : 80))
		snprintf(port, sizeof(port), ":%d", address->port);
	if (asprintf(&t->host, "%s%s%s%s", open, address->host, close, port) < 0)
		t->host = NULL;
	if (!t->host || asprintf(&t->url, "%s://%s/", e->tls ? "https" : "http", t->host) < 0) {
		t->url = NULL;
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	return OUTBOX_OK;
}

/* The part of the host behind "sqs.": sqs.eu-west-1.amazonaws.com, vpce-1-2.sqs.eu-west-1.vpce.amazonaws.com. */
static void find_region(const struct aws_transport *t, char *out, size_t size)
{
	const char *at = t->broker.endpoint.addresses[0].host;
	size_t length = strlen(t->service->name);

	out[0] = '\0';
	if (!glob_match("*.amazonaws.com", at) && !glob_match("*.amazonaws.com.cn", at))
		return;
	while (at && !(strncmp(at, t->service->name, length) == 0 &&
		       (at[length] == '.' || at[length] == '-'))) {
		at = strchr(at, '.');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return;
	/* sqs-fips.us-east-1 */
	at += strcspn(at, ".");
	if (*at)
		snprintf(out, size, "%.*s", (int)strcspn(at + 1, "."), at + 1);
	if (!strchr(out, '-'))
		out[0] = '\0';
}

static int set_region(struct aws_transport *t, struct url *url, struct outbox_error *err)
{
	const char *given = url_option(url, "region");

	if (!given) {
		find_region(t, t->region, sizeof(t->region));
		given = t->region;
	}
	if (!given[0])
		given = getenv("AWS_REGION");
	if (!given || !given[0])
		given = getenv("AWS_DEFAULT_REGION");
	if (!given || !given[0])
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "the host does not tell the region, and AWS_REGION is not set; add "
				   "?region=eu-west-1, for example");
	if (strspn(given, NAME_CHARS) != strlen(given) || strlen(given) >= sizeof(t->region))
		return outbox_fail(err, OUTBOX_ECONFIG, "option region: is not a region; correct it");
	memmove(t->region, given, strlen(given) + 1);
	return OUTBOX_OK;
}

/* ---- how -------------------------------------------------------------------------------------------- */

static int set_limits(struct aws_transport *t, struct url *url, struct outbox_error *err)
{
	const char *timeout = url_option(url, "timeout");
	struct outbox_error cause = OUTBOX_ERROR_INIT;
	int r;

	t->batch = AWS_BATCH_MAX;
	t->in_flight = DEFAULT_IN_FLIGHT;
	t->timeout = DEFAULT_TIMEOUT;
	r = url_number(url, "batch", 1, AWS_BATCH_MAX, &t->batch, err);
	if (!r)
		r = url_number(url, "in_flight", 1, AWS_IN_FLIGHT_MAX, &t->in_flight, err);
	if (!r && timeout && (duration_parse(timeout, &t->timeout, &cause) || t->timeout <= 0))
		return outbox_fail(err, OUTBOX_ECONFIG, "option timeout: %s",
				   cause.message[0] ? cause.message : "must be above 0");
	return r;
}

int aws_configure(struct broker *broker, struct url *url,
		  const struct outbox_transport_config *config, struct outbox_error *err)
{
	struct aws_transport *t = (struct aws_transport *)broker;
	int r = set_url(t, err);

	broker->envelope = OUTBOX_ENVELOPE_CE_STRUCTURED;
	t->unordered = config->unordered;
	/* a topic's ARN has the region */
	if (!r)
		r = set_region(t, url, err);
	if (!r)
		r = set_place(t, url, err);
	if (!r)
		r = set_limits(t, url, err);
	if (!r && !broker->endpoint.user != !broker->endpoint.password)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "an access key has two parts: write its id as the user, and name the "
				   "file with its secret with password_file");
	return r;
}
