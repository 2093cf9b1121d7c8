/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/ops.h"

static const char *const schemes[] = { "postgres", "postgresql", NULL };

const struct outbox_store_ops postgres_store_ops = {
	.struct_size = sizeof(postgres_store_ops),
	.name = "postgres",
	.schemes = schemes,
	.help = "postgres://USER@HOST:PORT/DATABASE, options schema=NAME, name=NAME, timeout=DURATION, "
		"password_file=PATH and libpq's own (sslmode, sslrootcert, ...)",
	.open = pg_open,
	.close = pg_close,
	.init = pg_init,
	.upgrade = pg_upgrade,
	.drop = pg_drop,
	.truncate = pg_truncate,
	.info = pg_info,
	.append = pg_append,
	.target_put = pg_target_put,
	.bands = pg_bands,
	.target_pause = pg_target_pause,
	.target_drop = pg_target_drop,
	.lease = pg_lease,
	.release = pg_release,
	.take = pg_take,
	.advance = pg_advance,
	.list = pg_list,
	.get = pg_get,
	.tail = pg_tail,
	.act = pg_act,
	.audit = pg_audit,
	.stats = pg_stats,
	.purge = pg_purge,
	.purgeable = pg_purgeable,
	.check = pg_check,
	.rebase = pg_rebase,
	.tend = pg_tend,
	.listen = pg_listen,
	.awake = pg_awake,
	.script = pg_script_text,
	.redact = pg_redact,
	.keys = pg_keys,
};
