/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hiding passwords must work on what people really type, broken URLs too, since those are what error
 * messages show. In doubt it hides too much: a path or a port that looks like a password.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/url.h"

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

/* Names may be written with escapes, and drivers get to see them without. */
static bool is_secret(const char *name, size_t size)
{
	_cleanup_(buf_deinit) struct buf plain = BUF_INIT(size);

	for (size_t i = 0; i < size; i++) {
		int c = percent_value(name + i, size - i);

		if (c != 0)
			buf_char(&plain, c < 0 ? name[i] : (char)c);
		i += c < 0 ? 0 : 2;
	}
	return plain.failed || secret_is_name(buf_str(&plain));
}

/* Does an option's secret begin at text[i]? Then *ret_end is where it ends. An http URL has its options behind a #. */
static bool option_at(const char *text, size_t query, size_t i, size_t *ret_end)
{
	size_t name = i;

	if (i < query + 2 || text[i - 1] != '=')
		return false;
	for (name = i - 1; name > query + 1 && !strchr("&#", text[name - 1]); name--) {
		if (text[name - 1] == '=') /* the first one of an option ends its name */
			return false;
	}
	if (!is_secret(text + name, i - 1 - name))
		return false;
	*ret_end = i + strcspn(text + i, "&");
	return true;
}

/*
 * Two ways to see a secret, which may overlap in a broken URL: as the password of an authority, and as
 * the value of an option. What either of them sees is hidden.
 */
static void mask(struct buf *out, const char *text)
{
	const char *authority = strstr(text, "//");
	const char *colon = authority ? strchr(authority, ':') : NULL;
	const char *at = colon ? password_end(authority, colon) : NULL;
	size_t query = strcspn(text, "?#"), size = strlen(text), hidden = 0, i;

	for (i = 0; i <= size; i++) {
		size_t end = 0;
		bool begins = option_at(text, query, i, &end);

		if (at && text + i == colon + 1) {
			begins = true;
			end = (size_t)(at - text) > end ? (size_t)(at - text) : end;
		}
		if (begins && i >= hidden)
			buf_text(out, MASK);
		hidden = end > hidden ? end : hidden;
		if (i < size && i >= hidden)
			buf_char(out, text[i]);
	}
}

void url_mask(const char *text, char *out, size_t size)
{
	_cleanup_(buf_deinit) struct buf masked = BUF_INIT((size_t)64 << 10);
	size_t length, i;

	if (size == 0)
		return;
	mask(&masked, text);
	length = masked.failed ? 0 : utf8_cut(buf_str(&masked), masked.size, size - 1);
	for (i = 0; i < length; i++) {
		unsigned char c = (unsigned char)masked.data[i];

		out[i] = c < 0x20 || c == 0x7f ? '?' : masked.data[i];
	}
	out[length] = '\0';
}
