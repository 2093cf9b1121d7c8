/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

struct mandatory {
	const char *name;
	size_t offset;
};

/* clang-format off */
#define OP(op) { #op, offsetof(struct outbox_store_ops, op) }
/* clang-format on */

static const struct mandatory mandatory[] = {
	OP(open),        OP(close),           OP(schema.init),    OP(schema.upgrade),
	OP(schema.drop), OP(schema.truncate), OP(schema.info),    OP(lane.target_put),
	OP(lane.lease),  OP(lane.release),    OP(lane.take_over), OP(lane.settle_and_claim),
};

/* Of operators: all of these or nothing at all. */
static const struct mandatory mandatory_operators[] = {
	OP(operate.append), OP(operate.target_pause), OP(operate.target_drop), OP(operate.list),
	OP(operate.get),    OP(operate.tail),         OP(operate.act),         OP(operate.audit),
	OP(operate.stats),  OP(operate.purge),        OP(operate.purgeable),
};

/* Of the inbox: likewise. */
static const struct mandatory mandatory_inbox[] = {
	OP(inbox.init), OP(inbox.drop),  OP(inbox.script), OP(inbox.stats),
	OP(inbox.list), OP(inbox.count), OP(inbox.prune),
};

static int check_mandatory(const struct outbox_store_ops *ops, const struct mandatory *list,
			   size_t n, struct outbox_error *err)
{
	for (size_t i = 0; i < n; i++) {
		void (*op)(void);

		__builtin_memcpy(&op, (const char *)ops + list[i].offset, sizeof(op));
		if (!op)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "store driver \"%s\": the op \"%s\" is missing",
					   ops->name, list[i].name);
	}
	return OUTBOX_OK;
}

int store_ops_check(const struct outbox_store_ops *ops, struct outbox_error *err)
{
	static const struct outbox_operator_ops none;
	static const struct outbox_inbox_ops no_inbox;
	int r;

	if (!ops)
		return outbox_fail(err, OUTBOX_EINVAL, "store driver: no ops given");
	/* with another version nothing behind it is where we would look for it */
	if (ops->contract != OUTBOX_STORE_CONTRACT)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"store driver: its contract has version %u, this library's has %d; set it "
			"to OUTBOX_STORE_CONTRACT and compile the driver with this library's "
			"outbox/store.h",
			ops->contract, OUTBOX_STORE_CONTRACT);
	if (!ops->name || !ops->name[0])
		return outbox_fail(err, OUTBOX_EINVAL, "store driver: it has no name");
	if (!ops->schemes || !ops->schemes[0])
		return outbox_fail(err, OUTBOX_EINVAL, "store driver \"%s\": it has no URL scheme",
				   ops->name);
	r = check_mandatory(ops, mandatory, ARRAY_SIZE(mandatory), err);
	if (!r && memcmp(&ops->operate, &none, sizeof(none)) != 0)
		r = check_mandatory(ops, mandatory_operators, ARRAY_SIZE(mandatory_operators), err);
	if (!r && memcmp(&ops->inbox, &no_inbox, sizeof(no_inbox)) != 0)
		r = check_mandatory(ops, mandatory_inbox, ARRAY_SIZE(mandatory_inbox), err);
	return r;
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
				   "from: schema %d is up to date; there is nothing to run", newest);
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
