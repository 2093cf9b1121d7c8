/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_ACT_H
#define OPERATE_ACT_H

/* What requeue, discard and defer have in common, whoever asks for them: which deliveries are meant, and one
 * step of the work. */

#include <outbox/store.h>

/* Who acts when nobody says: "user@host". */
void act_default_actor(char *out, size_t size);

/* ENOTFOUND unless there is a target of this name (NULL: any), with the one that was meant or all there are. */
int act_check_target(const struct outbox_stats *stats, const char *name,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Fill the target in where ids are given without one and there is only one. EINVAL lists them where there are
 * several; option is how the caller names the target: "--target".
 */
int act_choose_target(const struct outbox_stats *stats, const char *option,
		      struct outbox_filter *filter, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* An id that is not in the log is a mistake of its own, told before anything is changed. */
int act_check_ids(struct outbox_store *store, const struct outbox_filter *filter,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What is published later than now was not meant, nor of a requeue what fails later: otherwise it need not end. */
void act_bound(int action, outbox_time now, struct outbox_filter *filter);

/* One call of the store, repeated while it is busy. */
int act_page(struct outbox_store *store, const struct outbox_act *act,
	     struct outbox_acted *ret_acted, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Is there a page behind this one? Then the filter goes on there; cursor, of ACT_CURSOR_MAX bytes, is lent to it. */
#define ACT_CURSOR_MAX sizeof(((struct outbox_acted *)0)->cursor)
bool act_next(const struct outbox_acted *acted, struct outbox_filter *filter,
	      char cursor[ACT_CURSOR_MAX]);

/* ECONFLICT when each of the ids was refused, with the reason of the first. */
int act_check_refused(const struct outbox_acted *acted, const struct outbox_filter *filter,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
