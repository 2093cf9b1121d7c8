/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_SCHEMA_CHECK_H
#define OPERATE_SCHEMA_CHECK_H

#include <outbox/store.h>

/*
 * Can this program work with what is in the store? ESCHEMA with the command that repairs it; words are what it needs to
 * find the store: " --config outbox.yaml"; NULL: --store and the URL.
 */
int store_ready(const struct outbox_store_info *info, const char *url, const char *words,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
