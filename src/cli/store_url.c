/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/store_url.h"

#include "base/buf.h"
#include "base/printable.h"
#include "base/secret.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/sources.h"

#include <stdio.h>
#include <string.h>

#define URL_MAX ((size_t)16 << 10)

bool store_is_postgres(const char *url)
{
	char scheme[32];

	return url && url_scheme(url, scheme, sizeof(scheme)) &&
	       (strcmp(scheme, "postgres") == 0 || strcmp(scheme, "postgresql") == 0);
}

static bool has_password(const char *text)
{
	_cleanup_(url_deinit) struct url url = { 0 };

	if (url_parse(text, &url, NULL) != OUTBOX_OK)
		return false; /* what cannot be parsed is refused in a moment */
	for (size_t i = 0; i < url.n_options; i++)
		if (secret_is_name(url.options[i].name) && !strstr(url.options[i].name, "file") &&
		    url.options[i].value[0] && url.options[i].value[0] != '/')
			return true;
	return url.password && url.password[0];
}

void url_warn(const char *option, const char *url)
{
	if (!has_password(url))
		return;
	fprintf(stderr,
		"outbox: warning: everybody on this machine can read the password in --%s (ps shows it); "
		"write password_file=PATH into the URL, or %s\n",
		option,
		strcmp(option, "to") == 0 ? "password: file:PATH into a file for --config"
		: store_is_postgres(url)
			? "give the URL in OUTBOX_STORE, or the password in PGPASSFILE"
			: "give the URL in OUTBOX_STORE");
}

static void set_warn(const char *set)
{
	const char *value = strchr(set, '='), *name;
	char key[200], shown[240];

	if (!value)
		return; /* refused in a moment */
	snprintf(key, sizeof(key), "%.*s", (int)(value++ - set), set);
	name = strrchr(key, '.');
	if (!has_password(value) &&
	    (!secret_is_name(name ? name + 1 : key) || !*value || strncmp(value, "file:", 5) == 0))
		return;
	fprintf(stderr,
		"outbox: warning: everybody on this machine can read the password in --set %s (ps shows it); "
		"write password: file:PATH into the file\n",
		text_shown(shown, sizeof(shown), key));
}

void sets_warn(const struct list *sets)
{
	for (size_t i = 0; i < sets->count; i++)
		set_warn(sets->items[i]);
}

/* A command that is suggested must work as it stands, so it names the store where this one did. */
static void suggest(struct cli *cli)
{
	_cleanup_(buf_deinit) struct buf word = BUF_INIT(sizeof(cli->store_option));
	char masked[300];

	url_mask(cli->store_url, masked, sizeof(masked));
	buf_shell_word(&word, masked);
	snprintf(cli->store_option, sizeof(cli->store_option), " --store %s", buf_str(&word));
	snprintf(cli->relay_option, sizeof(cli->relay_option), " --to NAME=URL%s", cli->store_option);
}

static const char *environment_text(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

int store_choose(struct cli *cli, struct outbox_error *err)
{
	const char *file = environment_text("OUTBOX_CONFIG");

	snprintf(cli->relay_option, sizeof(cli->relay_option), " --to NAME=URL");
	if (cli->store_url && (cli->config_file || cli->source))
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"--store cannot be combined with --%s; the configuration file names the store",
			cli->config_file ? "config" : "source");
	if (cli->store_url) {
		url_warn("store", cli->store_url);
		suggest(cli);
		return OUTBOX_OK;
	}
	if (!(cli->command->flags & COMMAND_FILE) || (!cli->config_file && !cli->source))
		cli->store_url = environment_text("OUTBOX_STORE");
	if (!(cli->command->flags & COMMAND_FILE) || cli->store_url)
		return OUTBOX_OK;
	if (cli->config_file || file)
		return sources_choose(cli, cli->config_file ? cli->config_file : file, err);
	return cli->source ? outbox_fail(err, OUTBOX_EINVAL,
					 "--source %s needs a file: give --config FILE or set "
					 "OUTBOX_CONFIG",
					 cli->source)
			   : OUTBOX_OK; /* opening says what is missing */
}

int store_add_schema(struct cli *cli, const char *schema, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(URL_MAX);
	_cleanup_(url_deinit) struct url url = { 0 };
	char theirs[80], ours[80];
	const char *named;
	int r;

	if (!cli->store_url)
		return OUTBOX_OK; /* opening it says what is missing */
	if (!store_is_postgres(cli->store_url))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--schema: only a PostgreSQL database has schemas; leave it out");
	r = url_parse(cli->store_url, &url, err);
	if (r)
		return r;
	named = url_option(&url, "schema");
	if (named && strcmp(named, schema) == 0)
		return OUTBOX_OK;
	if (named)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"--schema %s, but the store's URL says schema=%s; give one of the two",
			text_shown(ours, sizeof(ours), schema),
			text_shown(theirs, sizeof(theirs), named));
	buf_printf(&out, "%s%cschema=", cli->store_url, strchr(cli->store_url, '?') ? '&' : '?');
	url_escape(&out, schema, "");
	if (out.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	cli->store_owned = out.data;
	out = (struct buf)BUF_INIT(0);
	cli->store_url = cli->store_owned;
	suggest(cli); /* also when it came from the environment: that one has no schema */
	return OUTBOX_OK;
}

const char *const partition_names[] = { NULL, "none", "auto", NULL };
