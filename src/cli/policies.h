/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_POLICIES_H
#define CLI_POLICIES_H

#include <outbox/relay.h>

/* The preset of this name. ENOTFOUND with the nearest one, or all. */
int policy_find(const char *name, const struct outbox_policy **ret_policy,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
