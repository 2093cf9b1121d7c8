/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policies.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/text.h"

int policy_find(const char *name, const struct outbox_policy **ret_policy, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf names = BUF_INIT(400);
	struct nearest nearest;
	char shown[80];

	if (outbox_policy_find(name)) {
		*ret_policy = outbox_policy_find(name);
		return OUTBOX_OK;
	}
	nearest_init(&nearest, name);
	for (size_t i = 0; outbox_policy_at(i); i++) {
		nearest_offer(&nearest, outbox_policy_at(i)->name);
		buf_printf(&names, "%s%s", i ? ", " : "", outbox_policy_at(i)->name);
	}
	text_shown(shown, sizeof(shown), name);
	if (nearest.best)
		return outbox_fail(err, OUTBOX_ENOTFOUND, "no policy \"%s\"; did you mean %s?",
				   shown, nearest.best);
	return outbox_fail(err, OUTBOX_ENOTFOUND, "no policy \"%s\"; there are: %s", shown,
			   buf_str(&names));
}
