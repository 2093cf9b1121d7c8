/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sources.h"

#include "base/buf.h"
#include "base/printable.h"
#include "cli/config_file.h"
#include "cli/format.h"
#include "cli/table.h"
#include "core/secrets.h"

#include <stdio.h>

static int several(const struct cli *cli, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(4000);

	for (size_t i = 0; i < cli->n_sources; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", cli->sources[i].name);
	return outbox_fail(err, OUTBOX_EINVAL,
			   "the file has several sources; give --source with one of: %s",
			   buf_str(&names));
}

/* The URLs of these sources, with their passwords in them. */
static int list_urls(struct cli *cli, const struct config_source *from, size_t count,
		     struct outbox_error *err)
{
	struct source_url *list = outbox_arena_alloc(cli->config->arena, count * sizeof(*list));

	if (!list)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		struct outbox_relay_config relay;
		int r = config_relay(cli->config, &from[i], &relay, err);

		if (r)
			return outbox_wrap(err, "source \"%s\"", from[i].name);
		list[i] = (struct source_url){ from[i].name, relay.store };
	}
	cli->sources = list;
	cli->n_sources = count;
	return OUTBOX_OK;
}

int sources_choose(struct cli *cli, const char *file, struct outbox_error *err)
{
	static const struct list no_sets;
	const struct config_source *from;
	size_t count;
	int r = config_open_told(file, &no_sets, true, &cli->config, err);

	if (r)
		return r;
	from = cli->config->sources.items;
	count = cli->config->sources.count;
	if (cli->source) {
		r = config_source_find(cli->config, cli->source, &from, err);
		count = 1;
	}
	if (r == OUTBOX_OK)
		r = list_urls(cli, from, count, err);
	if (r)
		return r;
	if (count > 1 && !(cli->command->flags & COMMAND_MANY))
		return several(cli, err);
	sources_use(cli, 0);
	return OUTBOX_OK;
}

/* A command that is suggested names file and source as this one did; OUTBOX_CONFIG holds for both. */
void sources_use(struct cli *cli, size_t i)
{
	_cleanup_(buf_deinit) struct buf words = BUF_INIT(sizeof(cli->store_option));

	cli_close(cli);
	cli->store_url = cli->sources[i].store;
	if (cli->config_file) {
		buf_text(&words, " --config ");
		buf_shell_word(&words, cli->config_file);
	}
	snprintf(cli->relay_option, sizeof(cli->relay_option), "%s", buf_str(&words));
	if (cli->config->sources.count > 1) {
		buf_text(&words, " --source ");
		buf_shell_word(&words, cli->sources[i].name);
	}
	snprintf(cli->store_option, sizeof(cli->store_option), "%s", buf_str(&words));
}

static json_t *tell_trouble(struct cli *cli, const char *name, int r, const struct outbox_error *err)
{
	if (!cli->exit)
		cli->exit = exit_of(r);
	if (cli->json)
		return json_pack("{s:s, s:o}", "health", "unreachable", "error",
				 json_text(err->message));
	printf("%s%s%s  %sunreachable%s\n", colour_on(cli, BOLD), name, colour_off(cli),
	       colour_on(cli, RED), colour_off(cli));
	printable_printf(stdout, "%s", err->message);
	return NULL;
}

/* One of several. */
static json_t *do_source(struct cli *cli, const char *name, source_fn one, void *context, bool headed)
{
	struct outbox_error own = OUTBOX_ERROR_INIT;
	json_t *said = NULL;
	int r;

	if (headed && !cli->json)
		printf("%s%s%s\n", colour_on(cli, BOLD), name, colour_off(cli));
	r = one(cli, name, context, &said, &own);
	if (r) {
		hide_secrets_in(own.message, sizeof(own.message));
		json_decref(said);
		said = tell_trouble(cli, name, r, &own);
	}
	if (said)
		json_object_set_new(said, "source", json_text(name));
	return said;
}

int sources_each(struct cli *cli, source_fn one, void *context, bool headed, struct outbox_error *err)
{
	json_t *list, *said = NULL;
	int r;

	if (cli->n_sources <= 1) {
		r = one(cli, cli->n_sources ? cli->sources[0].name : NULL, context, &said, err);
		if (r == OUTBOX_OK && cli->json)
			return json_print(said, err);
		json_decref(said);
		return r;
	}
	list = cli->json ? json_array() : NULL;
	for (size_t i = 0; i < cli->n_sources; i++) {
		if (i && !cli->json)
			puts("");
		sources_use(cli, i);
		json_array_append_new(list,
				      do_source(cli, cli->sources[i].name, one, context, headed));
	}
	return cli->json ? json_print(json_pack("{s:o}", "sources", list), err) : OUTBOX_OK;
}

/* One of several: where it is not, nothing is told. */
static int look_in(struct cli *cli, const char *name, source_fn one, void *context,
		   json_t **ret_json, struct outbox_error *err)
{
	int closed = cli_open(cli, OPEN_READY, err);
	int r = closed ? closed : one(cli, name, context, ret_json, err);

	if (r == OUTBOX_OK && *ret_json)
		json_object_set_new(*ret_json, "source", json_text(name));
	if (r == OUTBOX_OK || (r == OUTBOX_ENOTFOUND && !closed))
		return r;
	hide_secrets_in(err->message, sizeof(err->message));
	*ret_json = tell_trouble(cli, name, r, err);
	return OUTBOX_ECONN;
}

int sources_find(struct cli *cli, source_fn one, void *context, struct outbox_error *err)
{
	struct outbox_error own = OUTBOX_ERROR_INIT;
	bool found = false;
	json_t *list, *said = NULL;

	if (cli->n_sources <= 1) {
		int r = cli_open(cli, OPEN_READY, err);

		return r ? r : sources_each(cli, one, context, false, err);
	}
	list = cli->json ? json_array() : NULL;
	for (size_t i = 0; i < cli->n_sources; i++, said = NULL) {
		sources_use(cli, i);
		found |= look_in(cli, cli->sources[i].name, one, context, &said, &own) == OUTBOX_OK;
		if (said)
			json_array_append_new(list, said);
	}
	if (found)
		return cli->json ? json_print(json_pack("{s:o}", "sources", list), err) : OUTBOX_OK;
	json_decref(list);
	if (cli->exit)
		return outbox_fail(err, OUTBOX_ECONN,
				   "not found, but not every source of the file could be searched");
	return outbox_fail(err, OUTBOX_ENOTFOUND, "%s, in none of the %zu sources of the file",
			   own.message, cli->n_sources);
}
