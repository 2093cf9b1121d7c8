/* SPDX-License-Identifier: Apache-2.0 */

/*
 * postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?option=value
 *
 * Options are ours (schema, name, timeout, password_file) or libpq's own, which are checked by name. Where
 * nothing is said: a writable server is wanted (a standby is refused), the server's certificate is
 * verified unless the server is this machine, and a dead peer is noticed by keepalives.
 */
#include "base/cleanup.h"
#include "store/postgres/connect.h"
#include "store/postgres/ops.h"
#include "store/postgres/readahead.h"
#include "store/postgres/schema.h"

#include <stdio.h>
#include <stdlib.h>

static void pg_close(struct outbox_store *store)
{
	struct pg_store *s = pg_of(store);

	if (!s)
		return;
	PQfinish(s->conn);
	pg_readahead_free(s);
	free(s);
}

static int pg_open(const struct outbox_store_config *config, bool create,
		   struct outbox_store **ret_store, struct outbox_error *err)
{
	_cleanup_(pg_settings_deinit) struct pg_settings settings = { 0 };
	struct pg_store *s;
	int r;

	(void)create; /* a database is made by its administrator, the schema by init */
	r = pg_settings_parse(config->url, &settings, err);
	if (r != OUTBOX_OK)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	s->base.ops = &postgres_store_ops;
	s->clock = config->clock;
	s->random = config->random;
	s->client_clock = settings.client_clock;
	s->timeout = settings.timeout;
	snprintf(s->where, sizeof(s->where), "%s", settings.where);
	snprintf(s->name, sizeof(s->name), "%s", settings.name);
	snprintf(s->source, sizeof(s->source), "/outbox/%s", s->name);
	if (settings.schema)
		r = pg_schema_name(s, settings.schema, err);
	if (r == OUTBOX_OK)
		r = pg_connect(s, &settings, err);
	if (r != OUTBOX_OK) {
		pg_close(&s->base);
		return r;
	}
	*ret_store = &s->base;
	return OUTBOX_OK;
}

static int pg_check_url(const char *url, struct outbox_error *err)
{
	_cleanup_(pg_settings_deinit) struct pg_settings settings = { 0 };
	struct pg_store s = { .timeout = 0 };
	int r = pg_settings_parse(url, &settings, err);

	return r == OUTBOX_OK && settings.schema ? pg_schema_name(&s, settings.schema, err) : r;
}

static const char *const schemes[] = { "postgres", "postgresql", NULL };

const struct outbox_store_ops postgres_store_ops = {
	.contract = OUTBOX_STORE_CONTRACT,
	.name = "postgres",
	.schemes = schemes,
	.help = "postgres://USER@HOST:PORT/DATABASE, options schema=NAME, name=NAME, timeout=DURATION, "
		"password_file=PATH and libpq's own (sslmode, sslrootcert, ...)",
	.open = pg_open,
	.close = pg_close,
	.check_url = pg_check_url,
	.schema = {
		.init = pg_init,
		.upgrade = pg_upgrade,
		.drop = pg_drop,
		.truncate = pg_truncate,
		.info = pg_info,
		.script = pg_script_text,
	},
	.lane = {
		.target_put = pg_target_put,
		.wants_start = pg_wants_start,
		.bands = pg_bands,
		.lease = pg_lease,
		.release = pg_release,
		.take_over = pg_take_over,
		.settle_and_claim = pg_settle_and_claim,
		.settle_and_claim_lanes = pg_settle_and_claim_lanes,
		.look = pg_look,
		.unserved = pg_unserved,
		.maintain = pg_maintain,
		.listen = pg_listen,
		.stop_listening = pg_stop_listening,
	},
	.operate = {
		.append = pg_append,
		.target_pause = pg_target_pause,
		.target_drop = pg_target_drop,
		.list = pg_list,
		.get = pg_get,
		.tail = pg_tail,
		.act = pg_act,
		.audit = pg_audit,
		.audit_add = pg_audit_add,
		.stats = pg_stats,
		.purge = pg_purge,
		.purgeable = pg_purgeable,
		.check = pg_check,
		.rebase = pg_rebase,
		.redact = pg_redact,
		.keys = pg_keys,
		.amend = pg_amend,
		.amendments = pg_amendments,
		.attempts = pg_attempts,
		.cancel = pg_cancel,
		.find_key = pg_find_key,
	},
	.inbox = {
		.init = pg_inbox_init,
		.drop = pg_inbox_drop,
		.script = pg_inbox_script,
		.stats = pg_inbox_stats,
		.list = pg_inbox_list,
		.count = pg_inbox_count,
		.prune = pg_inbox_prune,
	},
};
