/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_OPS_H
#define STORE_SQLITE_OPS_H

/* The ops of include/outbox/store.h, one file each or per group. open.c lists them. */

#include "store/sqlite/db.h"

extern const struct outbox_store_ops sqlite_store_ops;

int sqlite_open(const struct outbox_store_config *config, bool create,
		struct outbox_store **ret_store, struct outbox_error *err);
int sqlite_check_url(const char *url, struct outbox_error *err);
void sqlite_close(struct outbox_store *store);
int sqlite_init(struct outbox_store *store, const struct outbox_init_options *options,
		struct outbox_error *err);
int sqlite_upgrade(struct outbox_store *store, const struct outbox_init_options *options,
		   int *ret_from, struct outbox_error *err);
int sqlite_drop(struct outbox_store *store, struct outbox_error *err);
int sqlite_truncate(struct outbox_store *store, struct outbox_error *err);
int sqlite_info(struct outbox_store *store, struct outbox_store_info *ret_info,
		struct outbox_error *err);
int sqlite_append(struct outbox_store *store, const struct outbox_message *messages,
		  size_t n_messages, int64_t *ret_seqs, bool *ret_repeated,
		  struct outbox_error *err);
int sqlite_target_put(struct outbox_store *store, const struct outbox_target_def *def,
		      int64_t *ret_version, struct outbox_error *err);
int sqlite_target_pause(struct outbox_store *store, const char *target, bool pause,
			const char *actor, const char *reason, struct outbox_error *err);
int sqlite_target_drop(struct outbox_store *store, const char *target, const char *actor,
		       const char *reason, struct outbox_error *err);
int sqlite_lease(struct outbox_store *store, const struct outbox_lease_request *request,
		 struct outbox_lease *ret_lease, struct outbox_error *err);
int sqlite_release(struct outbox_store *store, const char *target, int lane, const char *owner,
		   struct outbox_error *err);
int sqlite_take_over(struct outbox_store *store, const char *target, int lane, const char *owner,
		     int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err);
int sqlite_settle_and_claim(struct outbox_store *store,
			    const struct outbox_settle_and_claim *request,
			    struct outbox_arena *arena, struct outbox_claim *ret_claim,
			    struct outbox_error *err);
int sqlite_list(struct outbox_store *store, const struct outbox_filter *filter,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err);
int sqlite_get(struct outbox_store *store, const char *id, struct outbox_arena *arena,
	       struct outbox_claimed *ret_message, struct outbox_error *err);
int sqlite_tail(struct outbox_store *store, const char *cursor, size_t limit,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err);
int sqlite_act(struct outbox_store *store, const struct outbox_act *act,
	       struct outbox_acted *ret_acted, struct outbox_error *err);
int sqlite_audit(struct outbox_store *store, const char *id, size_t limit,
		 struct outbox_arena *arena, struct outbox_audit **ret_rows, size_t *ret_count,
		 struct outbox_error *err);
int sqlite_stats(struct outbox_store *store, struct outbox_arena *arena,
		 struct outbox_stats *ret_stats, struct outbox_error *err);
int sqlite_purge(struct outbox_store *store, const struct outbox_purge *purge,
		 struct outbox_purged *ret_purged, struct outbox_error *err);
int sqlite_purgeable(struct outbox_store *store, const struct outbox_purge *purge, int64_t after_seq,
		     struct outbox_arena *arena, struct outbox_claimed **ret_messages,
		     size_t *ret_count, struct outbox_error *err);
int sqlite_amend(struct outbox_store *store, const struct outbox_amend *amend,
		 struct outbox_amended *ret_amended, struct outbox_error *err);
int sqlite_amendments(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		      struct outbox_amendment **ret_rows, size_t *ret_count,
		      struct outbox_error *err);
int sqlite_attempts(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		    struct outbox_attempt **ret_rows, size_t *ret_count, struct outbox_error *err);
int sqlite_cancel(struct outbox_store *store, const struct outbox_cancel *cancel, bool *ret_done,
		  struct outbox_error *err);
/* The same in the transaction that is open. */
int sqlite_cancel_inside(struct sqlite_store *s, const struct outbox_cancel *cancel, bool *ret_done,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;
/* A target is new, or has a new routing: what was cancelled and would be its own now is discarded there, too. */
int sqlite_cancel_for(struct sqlite_store *s, const char *target,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
int sqlite_redact(struct outbox_store *store, const struct outbox_redact *redact, bool *ret_done,
		  struct outbox_error *err);
int sqlite_keys(struct outbox_store *store, const struct outbox_keys_filter *filter,
		struct outbox_arena *arena, struct outbox_keys_page *ret_page,
		struct outbox_error *err);
int sqlite_find_key(struct outbox_store *store, const struct outbox_key_search *search,
		    struct outbox_arena *arena, struct outbox_key_found *ret_found,
		    struct outbox_error *err);
int sqlite_check(struct outbox_store *store,
		 void (*say)(void *context, int level, const char *subject, const char *text),
		 void *context, struct outbox_error *err);
int sqlite_bands(struct outbox_store *store, const char *target, unsigned *ret_bands,
		 struct outbox_error *err);
int sqlite_unserved(struct outbox_store *store, const struct outbox_unserved *note,
		    struct outbox_error *err);
int sqlite_wants_start(struct outbox_store *store, const char *target, bool *ret_wants,
		       struct outbox_error *err);
int sqlite_audit_add(struct outbox_store *store, const struct outbox_audit *row,
		     struct outbox_error *err);
int sqlite_rebase(struct outbox_store *store, const struct outbox_rebase *rebase,
		  void (*say)(void *context, int level, const char *subject, const char *text),
		  void *context, struct outbox_error *err);
int sqlite_inbox_init(struct outbox_store *store, bool *ret_made, struct outbox_error *err);
int sqlite_inbox_drop(struct outbox_store *store, struct outbox_error *err);
int sqlite_inbox_script(const char *schema, bool drop, char **ret_sql, struct outbox_error *err);
int sqlite_inbox_stats(struct outbox_store *store, struct outbox_inbox_stats *ret_stats,
		       struct outbox_error *err);
int sqlite_inbox_list(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		      struct outbox_arena *arena, struct outbox_inbox_page *ret_page,
		      struct outbox_error *err);
int sqlite_inbox_count(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		       int64_t *ret_count, struct outbox_error *err);
int sqlite_inbox_prune(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		       int64_t *ret_removed, struct outbox_error *err);
int sqlite_maintain(struct outbox_store *store, struct outbox_error *err);
int sqlite_script_text(const struct outbox_init_options *options, const char *schema,
		       char **ret_sql, struct outbox_error *err);

/* ---- act.c, for all ops -------------------------------------------------------------------- */

/* In the transaction of what it tells about. at 0: now; its number is not looked at. */
int sqlite_audit_write(struct sqlite_store *s, const struct outbox_audit *row,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
