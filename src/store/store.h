/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

/* Callers never touch a function pointer: these dispatch, and check what every driver must keep. */

#include <outbox/store.h>

/* Built-in drivers, NULL-terminated; the build generates the list. */
extern const struct outbox_store_ops *const store_drivers[];

/* EINVAL naming the first mandatory op that is missing. */
int store_ops_check(const struct outbox_store_ops *ops, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* NULL is legal and returns NULL. */
struct outbox_store *store_close(struct outbox_store *store);

/*
 * The tail of a claim that simply goes back to the log: how many of the n settlements, counted from
 * the end, are RETURNED log rows (claimed[i].detour false). All drivers cut there. PARKED ones do not
 * count: a lone blocked row would be claimed again for ever.
 */
size_t store_returned_tail(const struct outbox_settlement *settled, const bool *from_log, size_t n);

#endif
