/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "cli/cli.h"
#include "config/config.h"
#include "operate/act.h"
#include "operate/schema_check.h"
#include "relay/registry.h"
#include "store/store.h"

#include <stdlib.h>

#define ARENA_MAX ((size_t)64 << 20)

int cli_begin(struct cli *cli, struct outbox_error *err)
{
	if (!cli->actor) {
		act_default_actor(cli->actor_text, sizeof(cli->actor_text));
		cli->actor = cli->actor_text;
	}
	cli->clock = outbox_clock_system();
	random_init(&cli->random, random_system_seed());
	cli->arena = outbox_arena_new(ARENA_MAX);
	return cli->arena ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

int cli_open(struct cli *cli, enum open_mode mode, struct outbox_error *err)
{
	int r;

	if (!cli->store_url)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "no store is given: use --store sqlite:app.db or --config outbox.yaml, "
				   "or set OUTBOX_STORE or OUTBOX_CONFIG");
	r = cli_begin(cli, err);
	if (r)
		return r;
	r = registry_open_store(NULL, cli->store_url, mode == OPEN_CREATE, cli->clock,
				&cli->random.base, &cli->store, err);
	if (r)
		return r;
	r = store_info(cli->store, &cli->info, err);
	if (r || mode != OPEN_READY)
		return r;
	return store_ready(&cli->info, cli->store_url, cli->config ? cli->store_option : NULL, err);
}

void cli_close(struct cli *cli)
{
	cli->store = store_close(cli->store);
	cli->arena = outbox_arena_free(cli->arena);
}

void cli_done(struct cli *cli)
{
	cli_close(cli);
	free(cli->store_owned);
	config_free(cli->config);
}

static int check_target(const struct cli *cli, const struct outbox_stats *stats, const char *name,
			struct outbox_error *err)
{
	char shown[80];

	if (name && stats->n_targets == 0)
		return outbox_fail(err, OUTBOX_ENOTFOUND,
				   "no target \"%s\": %s has none yet; outbox relay%s registers one",
				   text_shown(shown, sizeof(shown), name), cli->info.name,
				   cli->relay_option);
	return act_check_target(stats, name, err);
}

int cli_open_target(struct cli *cli, const char *name, struct outbox_stats *ret_stats,
		    struct outbox_error *err)
{
	int r = cli_open(cli, OPEN_READY, err);

	if (r == OUTBOX_OK)
		r = store_stats(cli->store, cli->arena, ret_stats, err);
	return r ? r : check_target(cli, ret_stats, name, err);
}
