/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/*
 * A driver may be compiled against an older header and then has a smaller struct_size. All ops up to
 * purgeable are mandatory, so nothing smaller than that can be used at all; check and tend are
 * optional and NULL when the driver's struct ends before them.
 */
#define OPS_MIN offsetof(struct outbox_store_ops, check)

struct mandatory {
	const char *name;
	size_t offset;
};

/* clang-format off */
#define OP(op) { #op, offsetof(struct outbox_store_ops, op) }
/* clang-format on */

static const struct mandatory mandatory[] = {
	OP(open),        OP(close), OP(init),      OP(upgrade),    OP(drop),
	OP(truncate),    OP(info),  OP(append),    OP(target_put), OP(target_pause),
	OP(target_drop), OP(lease), OP(release),   OP(take_over),  OP(settle_and_claim),
	OP(list),        OP(get),   OP(tail),      OP(act),        OP(audit),
	OP(stats),       OP(purge), OP(purgeable),
};

int store_ops_check(const struct outbox_store_ops *ops, struct outbox_error *err)
{
	if (!ops)
		return outbox_fail(err, OUTBOX_EINVAL, "store driver: no ops given");
	if (ops->struct_size < OPS_MIN)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "store driver: struct_size is %zu, at least %zu is needed; set it to "
				   "sizeof(struct outbox_store_ops)",
				   ops->struct_size, OPS_MIN);
	if (!ops->name || !ops->name[0])
		return outbox_fail(err, OUTBOX_EINVAL, "store driver: it has no name");
	if (!ops->schemes || !ops->schemes[0])
		return outbox_fail(err, OUTBOX_EINVAL, "store driver \"%s\": it has no URL scheme",
				   ops->name);

	for (size_t i = 0; i < ARRAY_SIZE(mandatory); i++) {
		void (*op)(void);

		__builtin_memcpy(&op, (const char *)ops + mandatory[i].offset, sizeof(op));
		if (!op)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "store driver \"%s\": the op \"%s\" is missing",
					   ops->name, mandatory[i].name);
	}
	return OUTBOX_OK;
}

void store_cursor_format(int64_t seq, const char *target, char *out, size_t size)
{
	snprintf(out, size, "%" PRId64 ":%s", seq, target);
}

char *store_cursor_after(const struct outbox_delivery *last, struct outbox_arena *arena)
{
	char cursor[OUTBOX_TARGET_NAME_MAX + 32];

	store_cursor_format(last->seq, last->target, cursor, sizeof(cursor));
	return outbox_arena_text(arena, cursor);
}

int store_cursor_parse(const char *cursor, int64_t *ret_seq, char *ret_target,
		       struct outbox_error *err)
{
	const char *colon = strchr(cursor, ':');
	char number[24] = "", shown[80];
	int64_t seq;

	if (colon && (size_t)(colon - cursor) < sizeof(number) &&
	    strlen(colon + 1) <= OUTBOX_TARGET_NAME_MAX) {
		memcpy(number, cursor, (size_t)(colon - cursor));
		if (number_parse("cursor", number, 1, INT64_MAX, &seq, NULL) == OUTBOX_OK) {
			*ret_seq = seq;
			memcpy(ret_target, colon + 1, strlen(colon + 1) + 1);
			return OUTBOX_OK;
		}
	}
	return outbox_fail(err, OUTBOX_EINVAL,
			   "cursor: \"%s\" does not come from a page of this list; leave it out",
			   text_shown(shown, sizeof(shown), cursor));
}

int store_script_check(const struct outbox_init_options *options, int newest,
		       struct outbox_error *err)
{
	if (options->from < 0 || options->from > newest)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "from: there is no schema %d; this program knows 1 to %d",
				   options->from, newest);
	if (options->from == newest)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "from: schema %d is this program's; there is nothing to run",
				   newest);
	return OUTBOX_OK;
}

const char *store_script_body(const char *sql)
{
	const char *end = strstr(sql, "\n\n");

	return end ? end + 1 : sql;
}

int store_no_message(const char *id, struct outbox_error *err)
{
	char shown[96];

	return outbox_fail(err, OUTBOX_ENOTFOUND, "no message with the id \"%s\"",
			   text_shown(shown, sizeof(shown), id));
}

void store_lease_elsewhere(struct outbox_lease *lease, const char *place, const char *owner)
{
	snprintf(lease->elsewhere, sizeof(lease->elsewhere), "%s", place);
	snprintf(lease->elsewhere_owner, sizeof(lease->elsewhere_owner), "%s", owner);
}

int store_stats_unserved(struct outbox_stats *stats, const struct outbox_target_stats *said,
			 struct outbox_arena *arena, struct outbox_error *err)
{
	struct outbox_target_stats *targets = stats->targets;
	size_t at = 0;

	while (at < stats->n_targets && strcmp(targets[at].name, said->name) < 0)
		at++;
	if (at == stats->n_targets || strcmp(targets[at].name, said->name) != 0) {
		targets = outbox_arena_alloc(arena, (stats->n_targets + 1) * sizeof(*targets));
		if (!targets)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		if (at > 0)
			memcpy(targets, stats->targets, at * sizeof(*targets));
		if (at < stats->n_targets)
			memcpy(targets + at + 1, stats->targets + at,
			       (stats->n_targets - at) * sizeof(*targets));
		targets[at] = (struct outbox_target_stats){ .name = said->name };
		stats->targets = targets;
		stats->n_targets++;
	}
	if (!targets[at].unserved) {
		targets[at].unserved = said->unserved;
		targets[at].unserved_since = said->unserved_since;
	}
	return OUTBOX_OK;
}
