/* SPDX-License-Identifier: Apache-2.0 */

#include "base/url.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URL_MAX 8192

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Length of the scheme in front of its colon; 0 when there is none. */
static size_t scheme_length(const char *text)
{
	size_t n = 0;

	if (!is_letter(text[0]))
		return 0;
	while (is_letter(text[n]) || (text[n] >= '0' && text[n] <= '9') ||
	       (text[n] && strchr("+.-", text[n])))
		n++;
	return text[n] == ':' ? n : 0;
}

static void lower(char *text)
{
	for (; *text; text++) {
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text + 'a' - 'A');
	}
}

bool url_scheme(const char *text, char *ret_scheme, size_t size)
{
	size_t n = text ? scheme_length(text) : 0;

	if (n == 0 || n >= size)
		return false;
	memcpy(ret_scheme, text, n);
	ret_scheme[n] = '\0';
	lower(ret_scheme);
	return true;
}

int url_usual_port(const char *scheme)
{
	static const struct {
		const char *scheme;
		int port;
	} usual[] = {
		{ "amqp", 5672 },       { "amqps", 5671 },  { "amqp1", 5672 },  { "amqp1s", 5671 },
		{ "servicebus", 5671 }, { "kafka", 9092 },  { "kafkas", 9092 }, { "nats", 4222 },
		{ "tls", 4222 },        { "redis", 6379 },  { "mqtt", 1883 },   { "mqtts", 8883 },
		{ "http", 80 },         { "https", 443 },   { "sqs", 443 },     { "sqs+http", 80 },
		{ "sns", 443 },         { "sns+http", 80 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
		if (strcmp(usual[i].scheme, scheme) == 0)
			return usual[i].port;
	}
	return 0;
}

/* Percent escapes decoded into a new string. */
static int decode(const char *text, size_t size, char **ret_text, struct outbox_error *err)
{
	char *out = malloc(size + 1);

	if (!out)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!percent_decode(text, size, false, out)) {
		free(out);
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "\"%%\" is not followed by two hexadecimal digits (not "
				   "00); write %%25 for a percent sign");
	}
	*ret_text = out;
	return OUTBOX_OK;
}

void url_escape(struct buf *out, const char *text, const char *keep)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

	for (; *text; text++) {
		if (strchr(plain, *text) || strchr(keep, *text))
			buf_char(out, *text);
		else
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
	}
}

/* user:password@host. An @ in a password is taken kindly: the last one counts. */
static int parse_authority(struct url *url, const char *text, size_t size, struct outbox_error *err)
{
	const char *at = memrchr(text, '@', size);
	int r;

	url->has_authority = true;
	if (at) {
		size_t length = (size_t)(at - text);
		const char *colon = memchr(text, ':', length);

		if (colon) {
			r = decode(colon + 1, (size_t)(at - colon - 1), &url->password, err);
			if (r != OUTBOX_OK)
				return r;
			length = (size_t)(colon - text);
		}
		r = decode(text, length, &url->user, err);
		if (r != OUTBOX_OK)
			return r;
		size -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	url->host = strndup(text, size);
	return url->host ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static int add_option(struct url *url, const char *text, size_t size, struct outbox_error *err)
{
	const char *equals = memchr(text, '=', size);
	struct url_option *option = &url->options[url->n_options];
	char shown[80];
	int r;

	if (url->n_options == URL_OPTIONS_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG, "more than %d options; remove some",
				   URL_OPTIONS_MAX);
	if (!equals || equals == text)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "an option without a name or a value; write ?name=value&name=value");
	r = decode(text, (size_t)(equals - text), &option->name, err);
	if (r != OUTBOX_OK || !option->name)
		return r;
	url->n_options++; /* from here on url_deinit() knows it */
	r = decode(equals + 1, size - (size_t)(equals + 1 - text), &option->value, err);
	if (r != OUTBOX_OK)
		return r;
	for (size_t i = 0; i + 1 < url->n_options; i++) {
		if (strcmp(url->options[i].name, option->name) == 0)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "option \"%s\" is given twice; keep one of them",
					   text_shown(shown, sizeof(shown), option->name));
	}
	return OUTBOX_OK;
}

static int parse_options(struct url *url, const char *text, struct outbox_error *err)
{
	while (*text) {
		size_t length = strcspn(text, "&");
		int r = add_option(url, text, length, err);

		if (r != OUTBOX_OK)
			return r;
		text += length;
		if (*text == '&' && text[1] == '\0')
			return outbox_fail(err, OUTBOX_ECONFIG, "ends with \"&\"; remove it");
		text += *text == '&';
	}
	return OUTBOX_OK;
}

static bool is_web(const struct url *url)
{
	return strcmp(url->scheme, "http") == 0 || strcmp(url->scheme, "https") == 0;
}

/* The receiver's part: path and query. What follows the # is ours. */
static int parse_request(struct url *url, const char **text, struct outbox_error *err)
{
	size_t length = strcspn(*text, "#");

	url->request = strndup(*text, length);
	if (!url->request)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*text += length;
	return decode(url->request, strcspn(url->request, "?"), &url->path, err);
}

static int parse(struct url *url, const char *text, struct outbox_error *err)
{
	size_t length = scheme_length(text);
	int r;

	if (length == 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "no scheme; write one in front, such as sqlite:app.db or "
				   "file:out.jsonl");
	if (strlen(text) > URL_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG, "longer than %d bytes; shorten it", URL_MAX);
	url->scheme = strndup(text, length);
	if (!url->scheme)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	lower(url->scheme);
	text += length + 1;
	if (strncmp(text, "//", 2) == 0) {
		text += 2;
		length = strcspn(text, is_web(url) ? "/?#" : "/?");
		r = parse_authority(url, text, length, err);
		if (r != OUTBOX_OK)
			return r;
		text += length;
	}
	if (is_web(url)) {
		r = parse_request(url, &text, err);
	} else {
		length = strcspn(text, "?");
		r = decode(text, length, &url->path, err);
		text += length;
	}
	if (r != OUTBOX_OK)
		return r;
	return *text ? parse_options(url, text + 1, err) : OUTBOX_OK;
}

int url_parse(const char *text, struct url *ret_url, struct outbox_error *err)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	struct outbox_error cause;
	char masked[160], shown[160];
	int r = parse(&url, text ? text : "", &cause);

	if (r != OUTBOX_OK) {
		url_mask(text ? text : "", masked, sizeof(masked));
		return outbox_fail(err, r, "URL \"%s\": %s",
				   text_shown(shown, sizeof(shown), masked), cause.message);
	}
	*ret_url = url;
	url = (struct url){ 0 };
	return OUTBOX_OK;
}

void url_deinit(struct url *url)
{
	for (size_t i = 0; i < url->n_options; i++) {
		free(url->options[i].name);
		secret_free(url->options[i].value);
	}
	free(url->scheme);
	free(url->user);
	secret_free(url->password);
	free(url->host);
	free(url->path);
	free(url->request);
	*url = (struct url){ 0 };
}

const char *url_option(struct url *url, const char *name)
{
	for (size_t i = 0; i < url->n_options; i++) {
		if (strcmp(url->options[i].name, name) == 0) {
			url->options[i].used = true;
			return url->options[i].value;
		}
	}
	return NULL;
}

int url_choice(struct url *url, const char *name, const char *choices, const char **ret_choice,
	       struct outbox_error *err)
{
	const char *value = url_option(url, name);
	char shown[80];

	if (!value)
		return OUTBOX_OK;
	for (const char *at = choices; *at; at += strspn(at, ", ")) {
		size_t length = strcspn(at, ", ");

		if (strlen(value) == length && memcmp(at, value, length) == 0 &&
		    strcmp(value, "or") != 0) {
			*ret_choice = value;
			return OUTBOX_OK;
		}
		at += length;
	}
	return outbox_fail(err, OUTBOX_ECONFIG, "option %s: \"%s\" is not valid; use %s", name,
			   text_shown(shown, sizeof(shown), value), choices);
}

int url_flag(struct url *url, const char *name, bool *ret_flag, struct outbox_error *err)
{
	const char *value = NULL;
	int r = url_choice(url, name, "yes or no", &value, err);

	if (value)
		*ret_flag = value[0] == 'y';
	return r;
}

int url_number(struct url *url, const char *name, int64_t min, int64_t max, int64_t *ret_number,
	       struct outbox_error *err)
{
	const char *value = url_option(url, name);
	char what[80];

	snprintf(what, sizeof(what), "option %s", name);
	if (!value || number_parse(what, value, min, max, ret_number, err) == OUTBOX_OK)
		return OUTBOX_OK;
	if (err)
		err->status = OUTBOX_ECONFIG;
	return OUTBOX_ECONFIG;
}

int url_finish(struct url *url, const char *known, struct outbox_error *err)
{
	char shown[80];

	for (size_t i = 0; i < url->n_options; i++) {
		if (url->options[i].used)
			continue;
		text_shown(shown, sizeof(shown), url->options[i].name);
		if (!known || !*known)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "unknown option \"%s\": %s: URLs take none; remove it",
					   shown, url->scheme);
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "unknown option \"%s\": %s: URLs take %s; repair or remove it",
				   shown, url->scheme, known);
	}
	return OUTBOX_OK;
}

int url_check_bare(const char *text, struct outbox_error *err)
{
	_cleanup_(url_deinit) struct url url = { 0 };
	int r = url_parse(text, &url, err);

	if (r)
		return r;
	if (url.has_authority || url.path[0])
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: takes nothing after the colon; write %s:", url.scheme,
				   url.scheme);
	return url_finish(&url, NULL, err);
}
