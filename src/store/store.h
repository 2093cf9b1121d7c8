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

/* ---- the ops: dispatch.c ------------------------------------------------------------------- */

/*
 * One function for each op of include/outbox/store.h, which says what it does. They check what is the same for every
 * driver. Optional ops that a store does not have: bands, wants_start, unserved, maintain, audit_add, amendments, attempts and check do
 * nothing; the others are ENOTSUP.
 */
typedef void (*store_say)(void *context, int level, const char *subject, const char *text);

int store_open(const struct outbox_store_ops *ops, const struct outbox_store_config *config,
	       bool create, struct outbox_store **ret_store,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_check_url(const struct outbox_store_ops *ops, const char *url,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Of the schema. */
int store_init(struct outbox_store *store, const struct outbox_init_options *options,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_upgrade(struct outbox_store *store, const struct outbox_init_options *options,
		  int *ret_from, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_drop(struct outbox_store *store, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_truncate(struct outbox_store *store, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_info(struct outbox_store *store, struct outbox_store_info *ret_info,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
bool store_has_script(const struct outbox_store_ops *ops);
int store_script(const struct outbox_store_ops *ops, const struct outbox_init_options *options,
		 const char *schema, char **ret_sql, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Of lanes. */
int store_target_put(struct outbox_store *store, const struct outbox_target_def *def,
		     int64_t *ret_version, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_wants_start(struct outbox_store *store, const char *target, bool *ret_wants,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_bands(struct outbox_store *store, const char *target, unsigned *ret_bands,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_lease(struct outbox_store *store, const struct outbox_lease_request *request,
		struct outbox_lease *ret_lease, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_release(struct outbox_store *store, const char *target, int lane, const char *owner,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_take_over(struct outbox_store *store, const char *target, int lane, const char *owner,
		    int64_t new_token, struct outbox_head *ret_head,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_settle_and_claim(struct outbox_store *store, const struct outbox_settle_and_claim *request,
			   struct outbox_arena *arena, struct outbox_claim *ret_claim,
			   struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Can one call be for several lanes? */
bool store_joins_lanes(const struct outbox_store *store);
int store_settle_and_claim_lanes(struct outbox_store *store,
				 const struct outbox_settle_and_claim *requests, size_t count,
				 struct outbox_arena *const *arenas, struct outbox_claim *ret_claims,
				 struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Without it lanes look by claiming. */
bool store_can_look(const struct outbox_store *store);
int store_look(struct outbox_store *store, const struct outbox_look *look,
	       struct outbox_looked *ret_looked, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_unserved(struct outbox_store *store, const struct outbox_unserved *note,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
bool store_needs_maintenance(const struct outbox_store *store);
int store_maintain(struct outbox_store *store, struct outbox_error *err) OUTBOX_MUSTCHECK;
bool store_has_doorbell(const struct outbox_store *store);
int store_listen(struct outbox_store *store, int *ret_fd, bool *ret_again,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_stop_listening(struct outbox_store *store, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Of operators. Has the store any of them? */
bool store_has_operators(const struct outbox_store *store);
int store_append(struct outbox_store *store, const struct outbox_message *messages,
		 size_t n_messages, int64_t *ret_seqs, bool *ret_repeated,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_target_pause(struct outbox_store *store, const char *target, bool pause, const char *actor,
		       const char *reason, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_target_drop(struct outbox_store *store, const char *target, const char *actor,
		      const char *reason, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_list(struct outbox_store *store, const struct outbox_filter *filter,
	       struct outbox_arena *arena, struct outbox_page *ret_page,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_get(struct outbox_store *store, const char *id, struct outbox_arena *arena,
	      struct outbox_claimed *ret_message, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_tail(struct outbox_store *store, const char *cursor, size_t limit,
	       struct outbox_arena *arena, struct outbox_page *ret_page,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_act(struct outbox_store *store, const struct outbox_act *act,
	      struct outbox_acted *ret_acted, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_audit(struct outbox_store *store, const char *id, size_t limit,
		struct outbox_arena *arena, struct outbox_audit **ret_rows, size_t *ret_count,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_audit_add(struct outbox_store *store, const struct outbox_audit *row,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_stats(struct outbox_store *store, struct outbox_arena *arena,
		struct outbox_stats *ret_stats, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_purge(struct outbox_store *store, const struct outbox_purge *purge,
		struct outbox_purged *ret_purged, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_purgeable(struct outbox_store *store, const struct outbox_purge *purge, int64_t after_seq,
		    struct outbox_arena *arena, struct outbox_claimed **ret_messages,
		    size_t *ret_count, struct outbox_error *err) OUTBOX_MUSTCHECK;
bool store_has_check(const struct outbox_store *store);
int store_check(struct outbox_store *store, store_say say, void *context,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_rebase(struct outbox_store *store, const struct outbox_rebase *rebase, store_say say,
		 void *context, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_redact(struct outbox_store *store, const struct outbox_redact *redact, bool *ret_done,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_keys(struct outbox_store *store, const struct outbox_keys_filter *filter,
	       struct outbox_arena *arena, struct outbox_keys_page *ret_page,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_find_key(struct outbox_store *store, const struct outbox_key_search *search,
		   struct outbox_arena *arena, struct outbox_key_found *ret_found,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_amend(struct outbox_store *store, const struct outbox_amend *amend,
		struct outbox_amended *ret_amended, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_amendments(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		     struct outbox_amendment **ret_rows, size_t *ret_count,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

int store_attempts(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		   struct outbox_attempt **ret_rows, size_t *ret_count,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_cancel(struct outbox_store *store, const struct outbox_cancel *cancel, bool *ret_done,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Of the inbox. stats: of none where the store has no inbox. */
bool store_has_inbox(const struct outbox_store_ops *ops);
int store_inbox_init(struct outbox_store *store, bool *ret_made,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_inbox_drop(struct outbox_store *store, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_inbox_script(const struct outbox_store_ops *ops, const char *schema, bool drop,
		       char **ret_sql, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_inbox_stats(struct outbox_store *store, struct outbox_inbox_stats *ret_stats,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_inbox_list(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		     struct outbox_arena *arena, struct outbox_inbox_page *ret_page,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_inbox_count(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		      int64_t *ret_count, struct outbox_error *err) OUTBOX_MUSTCHECK;
int store_inbox_prune(struct outbox_store *store, const struct outbox_inbox_filter *filter,
		      int64_t *ret_removed, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A worker that was here before sends elsewhere. */
void store_lease_elsewhere(struct outbox_lease *lease, const char *place, const char *owner);

/*
 * Add to the stats what a relay says of a target that it does not serve; one that is not registered is put where its name
 * belongs. Of several that speak of one target the first counts. said: name, unserved, unserved_since. ENOMEM.
 */
int store_stats_unserved(struct outbox_stats *stats, const struct outbox_target_stats *said,
			 struct outbox_arena *arena, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The cursor of a page of deliveries, "SEQ:TARGET": the last row of the page before. Cut to size. */
void store_cursor_format(int64_t seq, const char *target, char *out, size_t size);
/* The same from the arena; NULL when there is no room. */
char *store_cursor_after(const struct outbox_delivery *last, struct outbox_arena *arena);
/* EINVAL when it is none. ret_target: OUTBOX_TARGET_NAME_MAX + 1 bytes. */
int store_cursor_parse(const char *cursor, int64_t *ret_seq, char *ret_target,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* EINVAL unless script() can be asked for this: from lies before the newest. */
int store_script_check(const struct outbox_init_options *options, int newest,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A file of the schema without what it says of itself: behind its first paragraph. */
const char *store_script_body(const char *sql);

/* ---- cancelling: amend.c ------------------------------------------------------------------- */

/* ECONFLICT unless the message is due later. For drivers. */
int store_cancel_check(outbox_time due_at, outbox_time now,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;
/*
 * ECONFLICT when a delivery is in the way, with the remedy. ret_wanted: it must be discarded; it may be there no more, or
 * never was. next_attempt_at of a pending one with a detour; 0: it has none. For drivers.
 */
int store_cancel_judge(const struct outbox_delivery *delivery, outbox_time now, bool *ret_wanted,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ---- corrections: amend.c ------------------------------------------------------------------ */

/* ECONFLICT when a delivery in this state (0: none) is in the way, with the remedy. For drivers. */
int store_amend_judge(const char *target, int state, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* ECONFLICT: none is left to be made. For drivers. */
/* The new headers would make it another target's, or take it from one: a lane may have passed it. */
int store_amend_reroutes(const char *target, struct outbox_error *err);
int store_amend_nothing(struct outbox_error *err);

/* What an operator wants changed; what is not given stays as it is. */
struct store_correction {
	const char *id, *actor, *reason;
	const void *data; /* NULL: as it is */
	size_t size;
	const char *content_type; /* NULL: as it is */
	const struct outbox_header *headers;
	size_t n_headers;
	bool set_headers; /* headers take the place of all that it has */
};

/*
 * Read the message, put the correction into it, check the result as a publisher's message is checked, have the
 * store amend it. EINVAL names the field: data, content_type, headers. The arena has room for the message.
 */
int store_correct(struct outbox_store *store, const struct store_correction *correction,
		  struct outbox_arena *arena, struct outbox_amended *ret_amended,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ENOTFOUND: there is no message with this id. */
int store_no_message(const char *id, struct outbox_error *err);

#endif
