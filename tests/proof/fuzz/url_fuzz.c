/* SPDX-License-Identifier: Apache-2.0 */

/*
 * URLs. Whatever url_parse() takes for a password, or for an option with a secret's name, must not be
 * seen in url_mask()'s copy of the URL, nor in an error about it.
 */

#include "base/cleanup.h"
#include "base/url.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "QxZ7QxZ7"

/* A mark at each end of the secret text[from..to): are both hidden? What is between stays as it is. */
static void check_hidden(const char *text, size_t from, size_t to)
{
	size_t size = strlen(text) + 2 * sizeof(MARK) + 4;
	char *marked = malloc(size), *masked = malloc(size * 2);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct url url = { 0 };
	int r;

	CHECK(marked && masked);
	/* The % behind it all makes it an error, which shows the URL. */
	snprintf(marked, size, "%.*s" MARK "%.*s" MARK "%s%%", (int)from, text, (int)(to - from),
		 text + from, text + to);
	url_mask(marked, masked, size * 2);
	CHECK(!strstr(masked, MARK));
	r = url_parse(marked, &url, &err);
	check_error(r, &err);
	CHECK(!strstr(err.message, MARK));
	if (r == OUTBOX_OK)
		url_deinit(&url);
	free(marked);
	free(masked);
}

static void check_password(const char *text, const struct url *url)
{
	const char *authority = text + strlen(url->scheme) + 3;
	size_t size = strcspn(authority, "/?");
	const char *at = memrchr(authority, '@', size), *colon = memchr(authority, ':', size);

	CHECK(at && colon && colon < at);
	check_hidden(text, (size_t)(colon + 1 - text), (size_t)(at - text));
}

static bool is_secret(const char *name)
{
	static const char *const words[] = { "pass", "pwd", "secret", "token" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasestr(name, words[i]))
			return true;
	}
	return false;
}

static void check_options(const char *text, struct url *url)
{
	const char *option = text + strcspn(text, "?") + 1;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	CHECK(url->n_options <= URL_OPTIONS_MAX);
	for (size_t i = 0; i < url->n_options; i++) {
		const char *equals = strchr(option, '=');
		const char *end = option + strcspn(option, "&");

		CHECK(equals && equals < end);
		if (is_secret(url->options[i].name))
			check_hidden(text, (size_t)(equals + 1 - text), (size_t)(end - text));
		option = end + 1;
		/* Names are there once, and what nobody asked for is an error. */
		check_error(url_finish(url, "this, that", &err), &err);
		CHECK(err.status == OUTBOX_ECONFIG);
		err = (struct outbox_error)OUTBOX_ERROR_INIT;
		CHECK(url_option(url, url->options[i].name) == url->options[i].value);
	}
	CHECK(url_finish(url, NULL, &err) == OUTBOX_OK);
}

static void check_url(const char *text, struct url *url)
{
	char scheme[64];

	CHECK(url->scheme && *url->scheme && url->path);
	CHECK(url_scheme(text, scheme, sizeof(scheme)) ? strcmp(scheme, url->scheme) == 0
						       : strlen(url->scheme) >= sizeof(scheme));
	CHECK(strspn(url->scheme, "abcdefghijklmnopqrstuvwxyz0123456789+.-") == strlen(url->scheme));
	CHECK(url->has_authority == (url->host != NULL));
	CHECK(!url->password || (url->user && url->has_authority));
	CHECK(!url->host || !strpbrk(url->host, "/?@"));
	if (!strstr(text, MARK)) {
		if (url->password)
			check_password(text, url);
		check_options(text, url);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	uint8_t room = input_byte(&in);
	const char *text = input_text(&in);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct url url = { 0 };
	char *masked = malloc((size_t)room + 1);
	int r;

	CHECK(masked);
	masked[room] = 'x'; /* behind what it may use */
	url_mask(text, masked, room);
	CHECK(masked[room] == 'x' && (room == 0 || strlen(masked) < room));
	for (size_t i = 0; room && masked[i]; i++)
		CHECK((unsigned char)masked[i] >= 0x20 && masked[i] != 0x7f);
	free(masked);
	r = url_parse(text, &url, &err);
	check_error(r, &err);
	if (r == OUTBOX_OK) {
		check_url(text, &url);
		url_deinit(&url);
	} else {
		CHECK(r == OUTBOX_ECONFIG && !url.scheme);
	}
	input_end(&in);
	return 0;
}
