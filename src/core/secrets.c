/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must never be written. A password that was changed is still one that somebody had, so it stays. Only when there is no
 * room the one goes that was not named for longest: every reload names all that are in use.
 */
#include "core/secrets.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/secret.h"
#include "base/url.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define SECRETS_MAX 512
#define LEAST 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *secrets[SECRETS_MAX];
static size_t count;

void secrets_hide(const char *secret)
{
	size_t i = 0;
	char *last;

	if (!secret || strlen(secret) < LEAST)
		return;
	pthread_mutex_lock(&lock);
	while (i < count && strcmp(secrets[i], secret) != 0)
		i++;
	last = i < count ? secrets[i] : strdup(secret);
	if (last && i == SECRETS_MAX) {
		secret_free(secrets[0]);
		i = 0;
	} else if (last && i == count) {
		count++;
	}
	/* the newest is the last */
	if (last) {
		memmove(&secrets[i], &secrets[i + 1], (count - i - 1) * sizeof(secrets[0]));
		secrets[count - 1] = last;
	}
	pthread_mutex_unlock(&lock);
}

void secrets_hide_url(const char *url)
{
	_cleanup_(url_deinit) struct url parsed = { 0 };

	if (url_parse(url, &parsed, NULL))
		return;
	secrets_hide(parsed.password);
	for (size_t i = 0; i < parsed.n_options; i++)
		if (secret_is_name(parsed.options[i].name) && parsed.options[i].value[0] != '/' &&
		    !strstr(parsed.options[i].name, "_file"))
			secrets_hide(parsed.options[i].value);
}

/* The longest secret that begins here; 0: none. */
static size_t secret_at(const char *text)
{
	size_t longest = 0;

	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(secrets[i]);

		if (length > longest && strncmp(text, secrets[i], length) == 0)
			longest = length;
	}
	return longest;
}

void hide_secrets(const char *text, struct buf *out)
{
	pthread_mutex_lock(&lock);
	while (*text) {
		size_t length = secret_at(text);

		if (length)
			buf_text(out, "***");
		else
			buf_char(out, *text);
		text += length ? length : 1;
	}
	pthread_mutex_unlock(&lock);
}

void hide_secrets_in(char *text, size_t size)
{
	_cleanup_(buf_deinit) struct buf hidden = BUF_INIT(4 * size);

	hide_secrets(text, &hidden);
	snprintf(text, size, "%s", hidden.failed ? "(out of memory)" : buf_str(&hidden));
}
