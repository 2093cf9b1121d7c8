/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policies.h"

#include "base/nearest.h"

int policy_find(const char *name, const struct outbox_policy **ret_policy, struct outbox_error *err)
{
	struct nearest nearest;

	if (outbox_policy_find(name)) {
		*ret_policy = outbox_policy_find(name);
		return OUTBOX_OK;
	}
	nearest_init(&nearest, name);
	for (size_t i = 0; outbox_policy_at(i); i++)
		nearest_offer(&nearest, outbox_policy_at(i)->name);
	return nearest_fail(&nearest, OUTBOX_ENOTFOUND, "policy", err);
}
