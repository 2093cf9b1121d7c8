/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The only place that calls the ops of a store. What every driver would have to check is checked here, once, so
 * that drivers get valid arguments: names and routes of targets, known actions and outcomes, reasons where they are
 * needed, limits between 1 and the greatest. An optional op that a store does not have does nothing where that is harmless, and is
 * ENOTSUP where somebody asked for it.
 */
#include "store/store.h"

#include "core/lifecycle.h"
#include "core/routing.h"
#include "core/secrets.h"

#include <stdio.h>

#define IDS_MAX 1000
#define INBOX_PRUNE_MAX 5000

int store_open(const struct outbox_store_ops *ops, const struct outbox_store_config *config,
	       bool create, struct outbox_store **ret_store, struct outbox_error *err)
{
	if (!config->clock || !config->random)
		return outbox_fail(err, OUTBOX_EINVAL, "a store needs a clock and a random source");
	secrets_hide_url(config->url);
	return ops->open(config, create, ret_store, err);
}

struct outbox_store *store_close(struct outbox_store *store)
{
	if (store)
		store->ops->close(store);
	return NULL;
}

int store_check_url(const struct outbox_store_ops *ops, const char *url, struct outbox_error *err)
{
	return ops->check_url ? ops->check_url(url, err) : OUTBOX_OK;
}

/* ---- the schema ---------------------------------------------------------------------------- */

int store_init(struct outbox_store *store, const struct outbox_init_options *options,
	       struct outbox_error *err)
{
	int lanes = options ? options->lanes : 0;

	if (lanes < 0 || lanes > OUTBOX_LANES_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "lanes: %d is not between 1 and %d", lanes,
				   OUTBOX_LANES_MAX);
	return store->ops->schema.init(store, options, err);
}

int store_upgrade(struct outbox_store *store, const struct outbox_init_options *options,
		  int *ret_from, struct outbox_error *err)
{
	return store->ops->schema.upgrade(store, options, ret_from, err);
}

int store_drop(struct outbox_store *store, struct outbox_error *err)
{
	return store->ops->schema.drop(store, err);
}

int store_truncate(struct outbox_store *store, struct outbox_error *err)
{
	return store->ops->schema.truncate(store, err);
}

int store_info(struct outbox_store *store, struct outbox_store_info *ret_info,
	       struct outbox_error *err)
{
	return store->ops->schema.info(store, ret_info, err);
}

bool store_has_script(const struct outbox_store_ops *ops)
{
	return ops->schema.script;
}

int store_script(const struct outbox_store_ops *ops, const struct outbox_init_options *options,
		 const char *schema, char **ret_sql, struct outbox_error *err)
{
	if (!store_has_script(ops))
		return outbox_fail(err, OUTBOX_ENOTSUP, "this store has no SQL to show");
	return ops->schema.script(options, schema, ret_sql, err);
}

/* ---- lanes --------------------------------------------------------------------------------- */

int store_target_put(struct outbox_store *store, const struct outbox_target_def *def,
		     int64_t *ret_version, struct outbox_error *err)
{
	int r = target_name_check(def->name, err);

	if (r == OUTBOX_OK)
		r = route_check(&def->route, err);
	if (r != OUTBOX_OK)
		return r;
	if (def->band_of && !store->ops->lane.bands)
		return outbox_fail(err, OUTBOX_ENOTSUP, "bands: this store knows none; remove it");
	return store->ops->lane.target_put(store, def, ret_version, err);
}

int store_wants_start(struct outbox_store *store, const char *target, bool *ret_wants,
		      struct outbox_error *err)
{
	*ret_wants = false;
	return store->ops->lane.wants_start
		       ? store->ops->lane.wants_start(store, target, ret_wants, err)
		       : OUTBOX_OK;
}

int store_bands(struct outbox_store *store, const char *target, unsigned *ret_bands,
		struct outbox_error *err)
{
	*ret_bands = 0;
	return store->ops->lane.bands ? store->ops->lane.bands(store, target, ret_bands, err)
				      : OUTBOX_OK;
}

/* Whoever reads it in the store does not know which words of it are passwords; this process does. */
static const char *without_secrets(const char *text, char out[OUTBOX_ERROR_MAX])
{
	if (!text)
		return NULL;
	snprintf(out, OUTBOX_ERROR_MAX, "%s", text);
	hide_secrets_in(out, OUTBOX_ERROR_MAX);
	return out;
}

int store_lease(struct outbox_store *store, const struct outbox_lease_request *request,
		struct outbox_lease *ret_lease, struct outbox_error *err)
{
	struct outbox_lease_request shown = *request;
	char outage[OUTBOX_ERROR_MAX];

	shown.outage = without_secrets(request->outage, outage);
	return store->ops->lane.lease(store, &shown, ret_lease, err);
}

int store_release(struct outbox_store *store, const char *target, int lane, const char *owner,
		  struct outbox_error *err)
{
	return store->ops->lane.release(store, target, lane, owner, err);
}

int store_take_over(struct outbox_store *store, const char *target, int lane, const char *owner,
		    int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err)
{
	return store->ops->lane.take_over(store, target, lane, owner, new_token, ret_head, err);
}

static int check_outcomes(const struct outbox_settle_and_claim *request, struct outbox_error *err)
{
	for (size_t i = 0; i < request->n_settled; i++) {
		const struct outbox_settlement *s = &request->settled[i];

		if (s->outcome <= OUTBOX_OUTCOME_UNSET || s->outcome > OUTBOX_OUT_FAILED)
			return outbox_fail(err, OUTBOX_EINVAL, "message %lld: outcome %d is unknown",
					   (long long)s->seq, s->outcome);
		if (i > 0 && s->seq <= request->settled[i - 1].seq)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "target %s, lane %d: the outcomes given are not in the order of "
					   "the claim",
					   request->target, request->lane);
	}
	return OUTBOX_OK;
}

int store_settle_and_claim(struct outbox_store *store, const struct outbox_settle_and_claim *request,
			   struct outbox_arena *arena, struct outbox_claim *ret_claim,
			   struct outbox_error *err)
{
	int r = check_outcomes(request, err);

	return r ? r : store->ops->lane.settle_and_claim(store, request, arena, ret_claim, err);
}

bool store_joins_lanes(const struct outbox_store *store)
{
	return store->ops->lane.settle_and_claim_lanes;
}

int store_settle_and_claim_lanes(struct outbox_store *store,
				 const struct outbox_settle_and_claim *requests, size_t count,
				 struct outbox_arena *const *arenas,
				 struct outbox_claim *ret_claims, struct outbox_error *err)
{
	if (count == 1)
		return store_settle_and_claim(store, requests, arenas[0], ret_claims, err);
	for (size_t i = 0; i < count; i++) {
		int r = check_outcomes(&requests[i], err);

		if (r)
			return r;
	}
	return store->ops->lane.settle_and_claim_lanes(store, requests, count, arenas, ret_claims,
						       err);
}

bool store_can_look(const struct outbox_store *store)
{
	return store->ops->lane.look;
}

int store_look(struct outbox_store *store, const struct outbox_look *look,
	       struct outbox_looked *ret_looked, struct outbox_error *err)
{
	return store->ops->lane.look(store, look, ret_looked, err);
}

int store_unserved(struct outbox_store *store, const struct outbox_unserved *note,
		   struct outbox_error *err)
{
	struct outbox_unserved shown = *note;
	char why[OUTBOX_ERROR_MAX];

	shown.why = without_secrets(note->why, why);
	return store->ops->lane.unserved ? store->ops->lane.unserved(store, &shown, err) : OUTBOX_OK;
}

bool store_needs_maintenance(const struct outbox_store *store)
{
	return store->ops->lane.maintain;
}

int store_maintain(struct outbox_store *store, struct outbox_error *err)
{
	return store->ops->lane.maintain ? store->ops->lane.maintain(store, err) : OUTBOX_OK;
}

bool store_has_doorbell(const struct outbox_store *store)
{
	return store->ops->lane.listen && store->ops->lane.stop_listening;
}

int store_listen(struct outbox_store *store, int *ret_fd, bool *ret_again, struct outbox_error *err)
{
	return store->ops->lane.listen(store, ret_fd, ret_again, err);
}

int store_stop_listening(struct outbox_store *store, struct outbox_error *err)
{
	return store->ops->lane.stop_listening(store, err);
}

/* ---- operators ----------------------------------------------------------------------------- */

bool store_has_operators(const struct outbox_store *store)
{
	return store->ops->operate.purge; /* one that all of them have */
}

/* ENOTSUP unless the store has the op that does this. */
static int need(const struct outbox_store *store, bool has, const char *what,
		struct outbox_error *err)
{
	if (has)
		return OUTBOX_OK;
	if (!store_has_operators(store))
		return outbox_fail(err, OUTBOX_ENOTSUP,
				   "this store has no operator interface: it cannot %s", what);
	return outbox_fail(err, OUTBOX_ENOTSUP, "this store cannot %s", what);
}

/* Rows of a page: 0: 100; at most 1,000. */
#define FIND_KEY_MAX 10000

static size_t page_limit(size_t limit)
{
	if (limit == 0)
		return 100;
	return limit < 1000 ? limit : 1000;
}

static int check_ids(const struct outbox_filter *filter, struct outbox_error *err)
{
	if (filter->n_ids > IDS_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "ids: %zu at once are too many, at most %d",
				   filter->n_ids, IDS_MAX);
	return OUTBOX_OK;
}

static int check_reason(const char *action, const char *reason, struct outbox_error *err)
{
	if (!reason || !reason[0])
		return outbox_fail(err, OUTBOX_EINVAL, "%s: a reason is required", action);
	return OUTBOX_OK;
}

int store_append(struct outbox_store *store, const struct outbox_message *messages,
		 size_t n_messages, int64_t *ret_seqs, bool *ret_repeated, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.append, "publish messages by itself", err);

	return r ? r
		 : store->ops->operate.append(store, messages, n_messages, ret_seqs, ret_repeated,
					      err);
}

int store_target_pause(struct outbox_store *store, const char *target, bool pause,
		       const char *actor, const char *reason, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.target_pause, "pause targets", err);

	return r ? r : store->ops->operate.target_pause(store, target, pause, actor, reason, err);
}

int store_target_drop(struct outbox_store *store, const char *target, const char *actor,
		      const char *reason, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.target_drop, "drop targets", err);

	return r ? r : store->ops->operate.target_drop(store, target, actor, reason, err);
}

int store_list(struct outbox_store *store, const struct outbox_filter *filter,
	       struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	struct outbox_filter checked = *filter;
	int r = need(store, store->ops->operate.list, "list deliveries", err);

	if (!r)
		r = check_ids(filter, err);
	checked.limit = page_limit(filter->limit);
	return r ? r : store->ops->operate.list(store, &checked, arena, ret_page, err);
}

int store_get(struct outbox_store *store, const char *id, struct outbox_arena *arena,
	      struct outbox_claimed *ret_message, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.get, "show messages", err);

	return r ? r : store->ops->operate.get(store, id, arena, ret_message, err);
}

int store_tail(struct outbox_store *store, const char *cursor, size_t limit,
	       struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.tail, "follow deliveries", err);

	return r ? r
		 : store->ops->operate.tail(store, cursor, page_limit(limit), arena, ret_page, err);
}

static int check_act(const struct outbox_act *act, struct outbox_error *err)
{
	if (act->action < OUTBOX_REQUEUE || act->action > OUTBOX_DEFER)
		return outbox_fail(err, OUTBOX_EINVAL, "action %d is unknown", act->action);
	if (!act->filter)
		return outbox_fail(err, OUTBOX_EINVAL, "%s: a filter or ids are required",
				   action_names[act->action]);
	if (act->action == OUTBOX_DEFER && act->until <= 0)
		return outbox_fail(err, OUTBOX_EINVAL, "defer: a time is required");
	if (act->action == OUTBOX_DISCARD && check_reason("discard", act->reason, err))
		return OUTBOX_EINVAL;
	return check_ids(act->filter, err);
}

int store_act(struct outbox_store *store, const struct outbox_act *act,
	      struct outbox_acted *ret_acted, struct outbox_error *err)
{
	struct outbox_filter filter;
	struct outbox_act checked = *act;
	int r = need(store, store->ops->operate.act, "requeue, discard or defer", err);

	if (!r)
		r = check_act(act, err);
	if (r)
		return r;
	filter = *act->filter;
	filter.limit = page_limit(filter.limit);
	checked.filter = &filter;
	return store->ops->operate.act(store, &checked, ret_acted, err);
}

int store_audit(struct outbox_store *store, const char *id, size_t limit, struct outbox_arena *arena,
		struct outbox_audit **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.audit, "show what was done", err);

	return r ? r
		 : store->ops->operate.audit(store, id, page_limit(limit), arena, ret_rows,
					     ret_count, err);
}

int store_audit_add(struct outbox_store *store, const struct outbox_audit *row,
		    struct outbox_error *err)
{
	return store->ops->operate.audit_add ? store->ops->operate.audit_add(store, row, err)
					     : OUTBOX_OK;
}

int store_stats(struct outbox_store *store, struct outbox_arena *arena,
		struct outbox_stats *ret_stats, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.stats, "report its state", err);

	r = r ? r : store->ops->operate.stats(store, arena, ret_stats, err);
	/* an inbox that this role may not read is nobody's trouble here: whoever prunes it is told */
	if (r == OUTBOX_OK && store_inbox_stats(store, &ret_stats->inbox, NULL))
		ret_stats->inbox = (struct outbox_inbox_stats){ 0 };
	return r;
}

int store_purge(struct outbox_store *store, const struct outbox_purge *purge,
		struct outbox_purged *ret_purged, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.purge, "remove finished messages", err);

	return r ? r : store->ops->operate.purge(store, purge, ret_purged, err);
}

int store_purgeable(struct outbox_store *store, const struct outbox_purge *purge, int64_t after_seq,
		    struct outbox_arena *arena, struct outbox_claimed **ret_messages,
		    size_t *ret_count, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.purgeable, "remove finished messages", err);

	return r ? r
		 : store->ops->operate.purgeable(store, purge, after_seq, arena, ret_messages,
						 ret_count, err);
}

bool store_has_check(const struct outbox_store *store)
{
	return store->ops->operate.check;
}

int store_check(struct outbox_store *store, store_say say, void *context, struct outbox_error *err)
{
	return store_has_check(store) ? store->ops->operate.check(store, say, context, err)
				      : OUTBOX_OK;
}

int store_rebase(struct outbox_store *store, const struct outbox_rebase *rebase, store_say say,
		 void *context, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.rebase, "realign lanes", err);

	return r ? r : store->ops->operate.rebase(store, rebase, say, context, err);
}

int store_redact(struct outbox_store *store, const struct outbox_redact *redact, bool *ret_done,
		 struct outbox_error *err)
{
	int r = need(store, store->ops->operate.redact, "redact", err);

	if (!r)
		r = check_reason("redact", redact->reason, err);
	return r ? r : store->ops->operate.redact(store, redact, ret_done, err);
}

int store_keys(struct outbox_store *store, const struct outbox_keys_filter *filter,
	       struct outbox_arena *arena, struct outbox_keys_page *ret_page,
	       struct outbox_error *err)
{
	struct outbox_keys_filter checked = *filter;
	int r = need(store, store->ops->operate.keys, "list blocked keys", err);

	checked.limit = page_limit(filter->limit);
	return r ? r : store->ops->operate.keys(store, &checked, arena, ret_page, err);
}

int store_find_key(struct outbox_store *store, const struct outbox_key_search *search,
		   struct outbox_arena *arena, struct outbox_key_found *ret_found,
		   struct outbox_error *err)
{
	struct outbox_key_search checked = *search;
	int r = need(store, store->ops->operate.find_key, "find messages by their key", err);

	if (!r && !search->key == !search->key_like)
		r = outbox_fail(err, OUTBOX_EINVAL,
				"find by key: give key or key_like, exactly one of the two");
	if (!checked.limit || checked.limit > FIND_KEY_MAX)
		checked.limit = FIND_KEY_MAX;
	return r ? r : store->ops->operate.find_key(store, &checked, arena, ret_found, err);
}

int store_amend(struct outbox_store *store, const struct outbox_amend *amend,
		struct outbox_amended *ret_amended, struct outbox_error *err)
{
	int r = need(store, store->ops->operate.amend, "amend", err);

	if (!r)
		r = check_reason("amend", amend->reason, err);
	return r ? r : store->ops->operate.amend(store, amend, ret_amended, err);
}

int store_amendments(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		     struct outbox_amendment **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	*ret_rows = NULL;
	*ret_count = 0;
	if (!store->ops->operate.amendments)
		return OUTBOX_OK;
	return store->ops->operate.amendments(store, id, arena, ret_rows, ret_count, err);
}

int store_attempts(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		   struct outbox_attempt **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	*ret_rows = NULL;
	*ret_count = 0;
	if (!store->ops->operate.attempts)
		return OUTBOX_OK;
	return store->ops->operate.attempts(store, id, arena, ret_rows, ret_count, err);
}

int store_cancel(struct outbox_store *store, const struct outbox_cancel *cancel, bool *ret_done,
		 struct outbox_error *err)
{
	int r = need(store, store->ops->operate.cancel, "cancel", err);

	if (!r)
		r = check_reason("cancel", cancel->reason, err);
	return r ? r : store->ops->operate.cancel(store, cancel, ret_done, err);
}

/* ---- the inbox ----------------------------------------------------------------------------- */

bool store_has_inbox(const struct outbox_store_ops *ops)
{
	return ops->inbox.init;
}

static int need_inbox(const struct outbox_store_ops *ops, struct outbox_error *err)
{
	if (store_has_inbox(ops))
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ENOTSUP, "this store has no inbox");
}

int store_inbox_init(struct outbox_store *store, bool *ret_made, struct outbox_error *err)
{
	int r = need_inbox(store->ops, err);

	return r ? r : store->ops->inbox.init(store, ret_made, err);
}

int store_inbox_drop(struct outbox_store *store, struct outbox_error *err)
{
	int r = need_inbox(store->ops, err);

	return r ? r : store->ops->inbox.drop(store, err);
}

int store_inbox_script(const struct outbox_store_ops *ops, const char *schema, bool drop,
		       char **ret_sql, struct outbox_error *err)
{
	int r = need_inbox(ops, err);

	return r ? r : ops->inbox.script(schema, drop, ret_sql, err);
}

int store_inbox_stats(struct outbox_store *store, struct outbox_inbox_stats *ret_stats,
		      struct outbox_error *err)
{
	*ret_stats = (struct outbox_inbox_stats){ 0 };
	return store_has_inbox(store->ops) ? store->ops->inbox.stats(store, ret_stats, err)
					   : OUTBOX_OK;
}

int store_inbox_list(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		     struct outbox_arena *arena, struct outbox_inbox_page *ret_page,
		     struct outbox_error *err)
{
	struct outbox_inbox_filter checked = *filter;
	int r = need_inbox(store->ops, err);

	checked.limit = page_limit(filter->limit);
	return r ? r : store->ops->inbox.list(store, &checked, arena, ret_page, err);
}

int store_inbox_count(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		      int64_t *ret_count, struct outbox_error *err)
{
	int r = need_inbox(store->ops, err);

	return r ? r : store->ops->inbox.count(store, filter, ret_count, err);
}

int store_inbox_prune(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		      int64_t *ret_removed, struct outbox_error *err)
{
	struct outbox_inbox_filter checked = *filter;
	int r = need_inbox(store->ops, err);

	if (!r && filter->before <= 0)
		r = outbox_fail(err, OUTBOX_EINVAL, "prune: an age is required");
	if (!filter->limit || filter->limit > INBOX_PRUNE_MAX)
		checked.limit = INBOX_PRUNE_MAX;
	return r ? r : store->ops->inbox.prune(store, &checked, ret_removed, err);
}
