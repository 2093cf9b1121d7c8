/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the OTLP export. */
#include "base/text.h"
#include "config/check.h"
#include "config/schema.h"

#include <string.h>

static const struct field otlp_keys[] = {
	{ KEY(URL, config_otlp, endpoint), .otherwise = "no export",
	  .example = "http://127.0.0.1:4318",
	  .help = "an OpenTelemetry collector, OTLP over HTTP: /v1/metrics, /v1/traces" },
	{ KEY(SECRET, config_otlp, headers), .otherwise = "none", .example = "file:/run/secrets/otlp",
	  .help = "NAME=VALUE,NAME=VALUE as in OTEL_EXPORTER_OTLP_HEADERS" },
	{ KEY(DURATION, config_otlp, interval), .fallback = "30s", .min = OUTBOX_SECONDS,
	  .max = OUTBOX_HOURS, .help = "send metrics this often; 1s to 1h" },
	{ KEY(BOOL, config_otlp, metrics), .fallback = "true", .help = "send metrics" },
	{ KEY(BOOL, config_otlp, traces), .fallback = "true",
	  .help = "send a span for each batch, linked to its messages' traceparent" },
};

bool otlp_header_next(const char **rest, struct otlp_header *ret_header)
{
	const char *text = *rest + strspn(*rest, " ,"), *equals, *end = text + strcspn(text, ",");

	*rest = end;
	if (text == end)
		return false;
	equals = memchr(text, '=', (size_t)(end - text));
	if (!equals)
		equals = end;
	*ret_header = (struct otlp_header){ .name = text,
					    .name_size = (size_t)(equals - text),
					    .value = equals < end ? equals + 1 : end };
	ret_header->value_size = (size_t)(end - ret_header->value);
	return true;
}

/* Never says what it found: it is a secret. */
static void check_headers(const struct node *map, const char *headers, struct problems *problems)
{
	struct otlp_header h;
	bool wrong = strpbrk(headers, "\r\n") != NULL;

	for (const char *rest = headers; !wrong && otlp_header_next(&rest, &h);)
		wrong = !text_is_token(h.name, h.name_size) || !h.value_size;
	if (wrong)
		problems_about(problems, node_find(map, "headers"),
			       "must be NAME=VALUE,NAME=VALUE in one line");
}

void check_otlp_secrets(const struct node *map, const struct config_otlp *otlp,
			struct problems *problems)
{
	if (!otlp->headers || strncmp(otlp->headers, "file:", 5) == 0)
		return;
	check_headers(map, otlp->headers, problems);
	if (otlp->endpoint && strncmp(otlp->endpoint, "http://", 7) == 0 &&
	    !check_loopback(otlp->endpoint + 7))
		problems_about(problems, node_find(map, "headers"),
			       "would cross the network in the clear; use https://");
}

static void check_otlp(const struct node *map, const void *value, struct problems *problems)
{
	const struct config_otlp *otlp = value;
	const char *url = otlp->endpoint;

	if (!url) {
		if (otlp->headers)
			problems_about(problems, node_find(map, "headers"),
				       "has no effect without endpoint; add endpoint");
		return;
	}
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		problems_about(problems, node_find(map, "endpoint"),
			       "must begin with https:// or http://");
	else if (check_url_has_user(url))
		problems_about(problems, node_find(map, "endpoint"),
			       "must not have a user in it; use headers");
	else if (strpbrk(url, "?#"))
		problems_about(problems, node_find(map, "endpoint"),
			       "must end with the host or a path; /v1/metrics is appended to it");
	check_otlp_secrets(map, otlp, problems);
}

const struct record schema_otlp = { SCHEMA(otlp_keys, config_otlp), .check = check_otlp };
