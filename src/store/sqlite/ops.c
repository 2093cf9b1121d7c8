/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/ops.h"

static const char *const schemes[] = { "sqlite", NULL };

const struct outbox_store_ops sqlite_store_ops = {
	.struct_size = sizeof(sqlite_store_ops),
	.name = "sqlite",
	.schemes = schemes,
	.help = "sqlite:PATH or sqlite:///PATH, options busy=DURATION, name=NAME",
	.open = sqlite_open,
	.close = sqlite_close,
	.init = sqlite_init,
	.upgrade = sqlite_upgrade,
	.drop = sqlite_drop,
	.truncate = sqlite_truncate,
	.info = sqlite_info,
	.append = sqlite_append,
	.target_put = sqlite_target_put,
	.target_pause = sqlite_target_pause,
	.target_drop = sqlite_target_drop,
	.lease = sqlite_lease,
	.release = sqlite_release,
	.take = sqlite_take,
	.advance = sqlite_advance,
	.list = sqlite_list,
	.get = sqlite_get,
	.tail = sqlite_tail,
	.act = sqlite_act,
	.audit = sqlite_audit,
	.stats = sqlite_stats,
	.purge = sqlite_purge,
	.purgeable = sqlite_purgeable,
	.check = sqlite_check,
	.tend = sqlite_tend,
	.script = sqlite_script_text,
	.redact = sqlite_redact,
	.keys = sqlite_keys,
};
