/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/bands.h"
#include "memory_store/db.h"
#include "memory_store/unserved.h"

#include <stddef.h>

/*
 * The table of ops. Each takes the database's lock, checks the schema where it needs one, and passes
 * the fault hook before and after: what a crash or a lost connection would do to a real database.
 */

static struct memory_store *self(struct outbox_store *store)
{
	return (struct memory_store *)store; /* base is its first member */
}

static int fault(const struct memory_db *db, const char *op, enum memory_phase phase,
		 struct outbox_error *err)
{
	return db->fault ? db->fault(db->fault_context, op, phase, err) : OUTBOX_OK;
}

/* Locks unless a fault comes first. */
static int enter(struct memory_db *db, const char *op, bool needs_schema, struct outbox_error *err)
{
	int status = fault(db, op, MEMORY_BEFORE, err);

	if (status)
		return status;
	pthread_mutex_lock(&db->lock);
	if (needs_schema)
		status = memory_schema_check(db, err);
	if (status)
		pthread_mutex_unlock(&db->lock);
	return status;
}

static int leave(struct memory_db *db, const char *op, int status, struct outbox_error *err)
{
	pthread_mutex_unlock(&db->lock);
	return status ? status : fault(db, op, MEMORY_AFTER, err);
}

#define RUN(op, needs_schema, call)                                     \
	do {                                                            \
		struct memory_store *s = self(store);                   \
		int status = enter(s->db, op, needs_schema, err);       \
                                                                        \
		return status ? status : leave(s->db, op, (call), err); \
	} while (0)

static int op_init(struct outbox_store *store, const struct outbox_init_options *options,
		   struct outbox_error *err)
{
	RUN("init", false, memory_init(s, options, err));
}

static int op_upgrade(struct outbox_store *store, const struct outbox_init_options *options,
		      int *ret_from, struct outbox_error *err)
{
	RUN("upgrade", false, memory_upgrade(s, options, ret_from, err));
}

static int op_drop(struct outbox_store *store, struct outbox_error *err)
{
	RUN("drop", false, memory_drop(s, err));
}

static int op_truncate(struct outbox_store *store, struct outbox_error *err)
{
	RUN("truncate", true, memory_truncate(s, err));
}

static int op_info(struct outbox_store *store, struct outbox_store_info *ret_info,
		   struct outbox_error *err)
{
	RUN("info", false, memory_info(s, ret_info, err));
}

static int op_append(struct outbox_store *store, const struct outbox_message *messages,
		     size_t n_messages, int64_t *ret_seqs, bool *ret_repeated,
		     struct outbox_error *err)
{
	RUN("append", true, memory_append(s, messages, n_messages, ret_seqs, ret_repeated, err));
}

static int op_bands(struct outbox_store *store, const char *target, unsigned *ret_bands,
		    struct outbox_error *err)
{
	RUN("bands", false, memory_bands(s, target, ret_bands, err));
}

static int op_target_put(struct outbox_store *store, const struct outbox_target_def *def,
			 int64_t *ret_version, struct outbox_error *err)
{
	RUN("target_put", true, memory_target_put(s, def, ret_version, err));
}

static int op_target_pause(struct outbox_store *store, const char *target, bool pause,
			   const char *actor, const char *reason, struct outbox_error *err)
{
	RUN("target_pause", true, memory_target_pause(s, target, pause, actor, reason, err));
}

static int op_target_drop(struct outbox_store *store, const char *target, const char *actor,
			  const char *reason, struct outbox_error *err)
{
	RUN("target_drop", true, memory_target_drop(s, target, actor, reason, err));
}

static int op_lease(struct outbox_store *store, const struct outbox_lease_request *request,
		    struct outbox_lease *ret_lease, struct outbox_error *err)
{
	RUN("lease", true, memory_lease(s, request, ret_lease, err));
}

static int op_release(struct outbox_store *store, const char *target, int lane, const char *owner,
		      struct outbox_error *err)
{
	RUN("release", true, memory_release(s, target, lane, owner, err));
}

static int op_take_over(struct outbox_store *store, const char *target, int lane, const char *owner,
			int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err)
{
	RUN("take_over", true, memory_take_over(s, target, lane, owner, new_token, ret_head, err));
}

static int op_settle_and_claim(struct outbox_store *store,
			       const struct outbox_settle_and_claim *request,
			       struct outbox_arena *arena, struct outbox_claim *ret_claim,
			       struct outbox_error *err)
{
	RUN("settle_and_claim", true, memory_settle_and_claim(s, request, arena, ret_claim, err));
}

static int op_list(struct outbox_store *store, const struct outbox_filter *filter,
		   struct outbox_arena *arena, struct outbox_page *ret_page,
		   struct outbox_error *err)
{
	RUN("list", true, memory_list(s, filter, arena, ret_page, err));
}

static int op_get(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		  struct outbox_claimed *ret_message, struct outbox_error *err)
{
	RUN("get", true, memory_get(s, id, arena, ret_message, err));
}

static int op_tail(struct outbox_store *store, const char *cursor, size_t limit,
		   struct outbox_arena *arena, struct outbox_page *ret_page,
		   struct outbox_error *err)
{
	RUN("tail", true, memory_tail(s, cursor, limit, arena, ret_page, err));
}

static int op_act(struct outbox_store *store, const struct outbox_act *act,
		  struct outbox_acted *ret_acted, struct outbox_error *err)
{
	RUN("act", true, memory_act(s, act, ret_acted, err));
}

static int op_audit(struct outbox_store *store, const char *id, size_t limit,
		    struct outbox_arena *arena, struct outbox_audit **ret_rows, size_t *ret_count,
		    struct outbox_error *err)
{
	RUN("audit", true, memory_audit(s, id, limit, arena, ret_rows, ret_count, err));
}

static int op_stats(struct outbox_store *store, struct outbox_arena *arena,
		    struct outbox_stats *ret_stats, struct outbox_error *err)
{
	RUN("stats", true, memory_stats(s, arena, ret_stats, err));
}

static int op_purge(struct outbox_store *store, const struct outbox_purge *purge,
		    struct outbox_purged *ret_purged, struct outbox_error *err)
{
	RUN("purge", true, memory_purge(s, purge, ret_purged, err));
}

static int op_rebase(struct outbox_store *store, const struct outbox_rebase *rebase,
		     void (*say)(void *context, int level, const char *subject, const char *text),
		     void *context, struct outbox_error *err)
{
	RUN("rebase", true, memory_rebase(s, rebase, say, context, err));
}

static int op_purgeable(struct outbox_store *store, const struct outbox_purge *purge,
			int64_t after_seq, struct outbox_arena *arena,
			struct outbox_claimed **ret_messages, size_t *ret_count,
			struct outbox_error *err)
{
	RUN("purgeable", true,
	    memory_purgeable(s, purge, after_seq, arena, ret_messages, ret_count, err));
}

static int op_redact(struct outbox_store *store, const struct outbox_redact *redact, bool *ret_done,
		     struct outbox_error *err)
{
	RUN("redact", true, memory_redact(s, redact, ret_done, err));
}

static int op_keys(struct outbox_store *store, const struct outbox_keys_filter *filter,
		   struct outbox_arena *arena, struct outbox_keys_page *ret_page,
		   struct outbox_error *err)
{
	RUN("keys", true, memory_keys(s, filter, arena, ret_page, err));
}

static int op_find_key(struct outbox_store *store, const struct outbox_key_search *search,
		       struct outbox_arena *arena, struct outbox_key_found *ret_found,
		       struct outbox_error *err)
{
	RUN("find by key", true, memory_find_key(s, search, arena, ret_found, err));
}

static int op_look(struct outbox_store *store, const struct outbox_look *look,
		   struct outbox_looked *ret_looked, struct outbox_error *err)
{
	RUN("look", true, memory_look(s, look, ret_looked, err));
}

static int op_unserved(struct outbox_store *store, const struct outbox_unserved *note,
		       struct outbox_error *err)
{
	RUN("unserved", true, memory_unserved(s, note, err));
}

static int op_amend(struct outbox_store *store, const struct outbox_amend *amend,
		    struct outbox_amended *ret_amended, struct outbox_error *err)
{
	RUN("amend", true, memory_amend(s, amend, ret_amended, err));
}

static int op_attempts(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		       struct outbox_attempt **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	RUN("attempts", true, memory_attempts(s, id, arena, ret_rows, ret_count, err));
}

static int op_cancel(struct outbox_store *store, const struct outbox_cancel *cancel, bool *ret_done,
		     struct outbox_error *err)
{
	RUN("cancel", true, memory_cancel(s, cancel, ret_done, err));
}

static int op_amendments(struct outbox_store *store, const char *id, struct outbox_arena *arena,
			 struct outbox_amendment **ret_rows, size_t *ret_count,
			 struct outbox_error *err)
{
	RUN("amendments", true, memory_amendments(s, id, arena, ret_rows, ret_count, err));
}

static int op_wants_start(struct outbox_store *store, const char *target, bool *ret_wants,
			  struct outbox_error *err)
{
	RUN("wants_start", true, memory_wants_start(s, target, ret_wants));
}

static const char *const schemes[] = { "memory", NULL };

const struct outbox_store_ops memory_store_ops = {
	.contract = OUTBOX_STORE_CONTRACT,
	.name = "memory",
	.schemes = schemes,
	.help = "memory:NAME, for tests: the database object is the driver's context",
	.open = memory_open,
	.close = memory_close,
	.schema = {
		.init = op_init,
		.upgrade = op_upgrade,
		.drop = op_drop,
		.truncate = op_truncate,
		.info = op_info,
	},
	.lane = {
		.target_put = op_target_put,
		.wants_start = op_wants_start,
		.bands = op_bands,
		.lease = op_lease,
		.release = op_release,
		.take_over = op_take_over,
		.settle_and_claim = op_settle_and_claim,
		.look = op_look,
		.unserved = op_unserved,
	},
	.operate = {
		.append = op_append,
		.target_pause = op_target_pause,
		.target_drop = op_target_drop,
		.list = op_list,
		.get = op_get,
		.tail = op_tail,
		.act = op_act,
		.audit = op_audit,
		.stats = op_stats,
		.purge = op_purge,
		.purgeable = op_purgeable,
		.rebase = op_rebase,
		.redact = op_redact,
		.keys = op_keys,
		.amend = op_amend,
		.amendments = op_amendments,
		.attempts = op_attempts,
		.cancel = op_cancel,
		.find_key = op_find_key,
	},
};
