/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

/* Callers never touch a function pointer: these dispatch, and check what every driver must keep. */

#include <outbox/store.h>

/* Built-in drivers, NULL-terminated; the build generates the list. */
extern const struct outbox_store_ops *const store_drivers[];

/* EINVAL naming the first mandatory op that is missing. */
int store_ops_check(const struct outbox_store_ops *ops, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Has the store this optional op? A driver of an older header has a shorter list. */
#define STORE_HAS(store, op)                                                         \
	((store)->ops->struct_size >=                                                \
		 offsetof(struct outbox_store_ops, op) + sizeof((store)->ops->op) && \
	 (store)->ops->op)

/* NULL is legal and returns NULL. */
struct outbox_store *store_close(struct outbox_store *store);

/* A worker that was here before sends elsewhere. */
void store_lease_elsewhere(struct outbox_lease *lease, const char *place, const char *owner);

/*
 * Add to the stats what a relay says of a target that it does not serve; one that is not registered is put where its name
 * belongs. Of several that speak of one target the first counts. said: name, unserved, unserved_since. ENOMEM.
 */
int store_stats_unserved(struct outbox_stats *stats, const struct outbox_target_stats *said,
			 struct outbox_arena *arena, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Rows of a page: 0: 100; at most 1,000. */
size_t store_page_limit(size_t limit);

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

/* ---- corrections: amend.c ------------------------------------------------------------------ */

/* EINVAL: no reason. For drivers. */
int store_amend_check(const struct outbox_amend *amend, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* ECONFLICT when a delivery in this state (0: none) is in the way, with the remedy. For drivers. */
int store_amend_judge(const char *target, int state, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* ECONFLICT: none is left to be made. For drivers. */
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
int store_amend(struct outbox_store *store, const struct store_correction *correction,
		struct outbox_arena *arena, struct outbox_amended *ret_amended,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ENOTFOUND: there is no message with this id. */
int store_no_message(const char *id, struct outbox_error *err);

#endif
