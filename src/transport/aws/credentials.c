/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who we are, looked for where AWS' own tools look: the target's URL, the environment, the shared file, the metadata
 * service of the machine. Looked for again at each connect, so a key that was changed is found after the first refusal.
 */

#include "transport/aws/driver.h"

#include "base/secret.h"
#include "base/text.h"
#include "core/secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RENEW_BEFORE (5 * OUTBOX_MINUTES) /* there are newer ones by then: AWS says so */
#define RENEW_PAUSE \
	(20 *       \
	 OUTBOX_SECONDS) /* after a failure: a batch does not wait for a silent service each time */

void aws_credentials_deinit(struct aws_credentials *credentials)
{
	secret_free(credentials->id);
	secret_free(credentials->secret);
	secret_free(credentials->token);
	*credentials = (struct aws_credentials){ 0 };
}

static int copy(const char *text, char **out, struct outbox_error *err)
{
	*out = text && text[0] ? strdup(text) : NULL;
	return text && text[0] && !*out ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory")
					: OUTBOX_OK;
}

static int copy_all(const char *id, const char *secret, const char *token,
		    struct aws_credentials *out, struct outbox_error *err)
{
	int r = copy(id, &out->id, err);

	if (!r)
		r = copy(secret, &out->secret, err);
	return r ? r : copy(token, &out->token, err);
}

/* ---- the shared file -------------------------------------------------------------------------------- */

static char *trim(char *text)
{
	size_t size;

	text += strspn(text, " \t\r");
	size = strlen(text);
	while (size && strchr(" \t\r", text[size - 1]))
		text[--size] = '\0';
	return text;
}

/* "[name]", and whether that is the profile. */
static bool is_section_of(char *line, const char *profile)
{
	char *end = strchr(line, ']');

	if (end)
		*end = '\0';
	return strcmp(trim(line + 1), profile) == 0;
}

static int take_line(char *line, struct aws_credentials *out, struct outbox_error *err)
{
	char *value = strchr(line, '='), *name, **member;

	if (!value)
		return OUTBOX_OK;
	*value++ = '\0';
	name = trim(line);
	member = strcmp(name, "aws_access_key_id") == 0       ? &out->id
		 : strcmp(name, "aws_secret_access_key") == 0 ? &out->secret
		 : strcmp(name, "aws_session_token") == 0     ? &out->token
							      : NULL;
	if (!member || *member)
		return OUTBOX_OK;
	return copy(trim(value), member, err);
}

static int read_profile(char *text, const char *profile, struct aws_credentials *out,
			struct outbox_error *err)
{
	char *rest = text;
	bool ours = false;
	int r = OUTBOX_OK;

	for (char *line; !r && (line = strsep(&rest, "\n"));) {
		line = trim(line);
		if (line[0] == '[')
			ours = is_section_of(line, profile);
		else if (ours && line[0] != '#' && line[0] != ';')
			r = take_line(line, out, err);
	}
	return r;
}

/* The value of a variable; NULL: it has none, or an empty one. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* Nothing is found without a file or its profile, unless somebody has named that. */
static int read_shared_file(struct aws_credentials *out, struct outbox_error *err)
{
	const char *path = variable("AWS_SHARED_CREDENTIALS_FILE"), *home = variable("HOME");
	const char *profile = variable("AWS_PROFILE");
	bool named = path || profile;
	char usual[4096], *text = NULL, shown[160];
	int r;

	snprintf(usual, sizeof(usual), "%s/.aws/credentials", home ? home : "");
	if (!path)
		path = usual;
	if (!named && access(path, F_OK) != 0)
		return OUTBOX_OK;
	r = secret_read_file("AWS_SHARED_CREDENTIALS_FILE", path, &text, err);
	if (!r)
		r = read_profile(text, profile ? profile : "default", out, err);
	secret_free(text);
	if (!r && profile && !out->id)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "AWS_PROFILE: \"%s\" is not in the file of credentials, or has no "
				   "aws_access_key_id; correct it",
				   text_shown(shown, sizeof(shown), profile));
	return r;
}

/* ---- all of them ------------------------------------------------------------------------------------ */

static int find(struct aws_transport *t, outbox_time deadline, struct aws_credentials *out,
		struct outbox_error *err)
{
	const struct endpoint *e = &t->broker.endpoint;
	const char *id = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY");
	int r;

	if (e->user)
		return copy_all(e->user, e->password, NULL, out, err);
	if (id || secret)
		return copy_all(id, secret, getenv("AWS_SESSION_TOKEN"), out, err);
	r = read_shared_file(out, err);
	/* half a key is refused, not filled up with the machine's */
	if (r || out->id || out->secret || out->token)
		return r;
	return aws_imds_read(t, deadline, out, err);
}

/* They become headers of a request and parts of its signature. */
static int check(const struct aws_transport *t, const struct aws_credentials *c,
		 struct outbox_error *err)
{
	const char *const parts[] = { c->id, c->secret, c->token };

	if (!c->id || !c->secret)
		return outbox_fail(err, OUTBOX_EAUTH,
				   "%s: an access key id without its secret, or the reverse; give both",
				   t->broker.shown);
	for (size_t i = 0; i < 3; i++)
		if (parts[i] && text_has_control(parts[i], strlen(parts[i])))
			return outbox_fail(err, OUTBOX_EAUTH,
					   "%s: the access key or its token has a control character; "
					   "correct it",
					   t->broker.shown);
	return OUTBOX_OK;
}

int aws_credentials_read(struct aws_transport *t, outbox_time deadline, struct outbox_error *err)
{
	struct aws_credentials found = { 0 };
	int r = find(t, deadline, &found, err);

	if (!r)
		r = check(t, &found, err);
	if (r) {
		aws_credentials_deinit(&found);
		return r;
	}
	secrets_hide(found.secret);
	if (found.token)
		secrets_hide(found.token);
	aws_credentials_deinit(&t->credentials);
	t->credentials = found;
	return OUTBOX_OK;
}

int aws_credentials_refresh(struct aws_transport *t, outbox_time deadline, struct outbox_error *err)
{
	struct outbox_clock *clock = t->broker.clock;
	outbox_time now = clock->wall(clock), expires = t->credentials.expires;
	int r;

	if (!expires || now < expires - RENEW_BEFORE ||
	    (now < expires && now < t->credentials.renew_from))
		return OUTBOX_OK;
	r = aws_credentials_read(t, deadline, now < expires ? NULL : err);
	if (!r || now >= expires)
		return r;
	t->credentials.renew_from = now + RENEW_PAUSE;
	return OUTBOX_OK;
}
