/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_MESSAGE_DETAIL_H
#define OPERATE_MESSAGE_DETAIL_H

#include <outbox/delivery.h>
#include <outbox/store.h>

/* A message with its deliveries and their failed attempts, what people did to it, newest first as the store gives it, and what it was before
 * people amended it. */
struct message_detail {
	struct outbox_claimed message;
	struct outbox_page page;
	struct outbox_audit *history;
	size_t n_history;
	struct outbox_attempt *attempts; /* that failed, by target, oldest first */
	size_t n_attempts;
	struct outbox_amendment *amended;
	size_t n_amended;
};

/* ENOTFOUND: there is no such message. */
int message_detail_read(struct outbox_store *store, const char *id, struct outbox_arena *arena,
			struct message_detail *ret_detail,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
