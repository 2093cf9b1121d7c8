/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_VIEWS_H
#define ADMIN_VIEWS_H

/* What programs are told of deliveries, messages, targets, audit rows: the same by --json and by the admin server. */

#include "admin/shape.h"

#include <outbox/delivery.h>
#include <outbox/store.h>

extern const struct shape view_delivery, view_audit, view_lane, view_target, view_message,
	view_message_detail, view_status;

json_t *json_delivery(const struct outbox_delivery *row);
json_t *json_audit(const struct outbox_audit *row);

/* How much of a payload is shown. */
enum payload_view { PAYLOAD_SHOWN = 1, PAYLOAD_MASKED, PAYLOAD_TOO_LARGE };

/* A message with its deliveries and what people did to it, newest first as the store gives it. */
struct message_detail {
	struct outbox_claimed message;
	struct outbox_page page;
	struct outbox_audit *history;
	size_t n_history;
	enum payload_view payload;
};

/* Read all of it. ENOTFOUND: there is no such message. */
int message_detail_read(struct outbox_store *store, const char *id, struct outbox_arena *arena,
			struct message_detail *ret_detail,
			struct outbox_error *err) OUTBOX_MUSTCHECK;
json_t *json_message_detail(const struct message_detail *detail);

json_t *json_lane(const struct outbox_stats *stats, const struct outbox_lane_stats *lane);
json_t *json_target(const struct outbox_stats *stats, const struct outbox_target_stats *target);
json_t *json_targets(const struct outbox_stats *stats);

/* A store with all its targets. */
json_t *json_status(const struct outbox_store_info *info, const struct outbox_stats *stats);

#endif
