/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hiding passwords must work on what people really type, broken URLs too, since those are what error
 * messages show. In doubt it hides too much: a path or a port that looks like a password.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/url.h"

#include <stdio.h>
#include <string.h>

#define MASK "***"

/* The @ that ends user:password, or NULL when there is no password. */
static const char *password_end(const char *authority, const char *colon)
{
	size_t head = strcspn(authority, "?");
	const char *at = memrchr(authority, '@', head);
	size_t port = strspn(colon + 1, "0123456789");

	if (at)
		return at > colon ? at : NULL;
	/* A ? inside the password, unless what follows the colon is just a port. */
	if (colon[1 + port] == '/' || colon[1 + port] == '?' || colon[1 + port] == '\0')
		return NULL;
	at = strrchr(authority, '@');
	return at && at > colon ? at : NULL;
}

static bool is_secret(const char *name, size_t size)
{
	static const char *const words[] = { "pass", "pwd", "secret", "token" };
	char text[64];
	size_t i;

	snprintf(text, sizeof(text), "%.*s", (int)(size > 63 ? 63 : size), name);
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasestr(text, words[i]))
			return true;
	}
	return false;
}

static void mask_options(struct buf *out, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "&");
		const char *equals = memchr(text, '=', length);

		if (equals && is_secret(text, (size_t)(equals - text))) {
			buf_append(out, text, (size_t)(equals + 1 - text));
			buf_text(out, MASK);
		} else {
			buf_append(out, text, length);
		}
		text += length;
		if (*text)
			buf_char(out, *text++);
	}
}

void url_mask(const char *text, char *out, size_t size)
{
	_cleanup_(buf_deinit) struct buf masked = BUF_INIT((size_t)64 << 10);
	const char *authority = strstr(text, "//");
	const char *colon = authority ? strchr(authority, ':') : NULL;
	const char *end = colon ? password_end(authority, colon) : NULL;
	size_t length, i;

	if (size == 0)
		return;
	if (end) {
		buf_append(&masked, text, (size_t)(colon + 1 - text));
		buf_text(&masked, MASK);
		text = end;
	}
	length = strcspn(text, "?");
	buf_append(&masked, text, length);
	if (text[length]) {
		buf_char(&masked, '?');
		mask_options(&masked, text + length + 1);
	}
	length = masked.failed ? 0 : utf8_cut(buf_str(&masked), masked.size, size - 1);
	for (i = 0; i < length; i++) {
		unsigned char c = (unsigned char)masked.data[i];

		out[i] = c < 0x20 || c == 0x7f ? '?' : masked.data[i];
	}
	out[length] = '\0';
}
