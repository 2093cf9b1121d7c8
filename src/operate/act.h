/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_ACT_H
#define OPERATE_ACT_H

/* What operators do with deliveries and targets, whoever asks for it. */

#include "operate/bulk.h"
#include "operate/selection.h"

#include <outbox/store.h>

/* Who acts when nobody says: "user@host". */
void act_default_actor(char *out, size_t size);

/* ENOTFOUND unless there is a target of this name (NULL: any), with the one that was meant or all there are. */
int act_check_target(const struct outbox_stats *stats, const char *name,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * May this be done to what the filter selects (selection_check())? EINVAL also for a defer whose time is not after now,
 * which would only take the delivery out of its key's order. filter: what act->filter will be.
 */
int act_check(const struct outbox_act *act, enum naming naming, outbox_time now,
	      struct outbox_filter *filter, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * From what was asked for to what is meant, by what the store has now. Ids must be there (ENOTFOUND) and need a target: the
 * only one is filled in, EINVAL lists several. Of a filter, what is published later than now is not meant, nor of a
 * requeue what fails later: otherwise it need not end.
 */
int act_settle(struct outbox_store *store, const struct outbox_stats *stats, int action,
	       enum naming naming, struct outbox_filter *filter,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* One transaction, of at most act->filter->limit deliveries. ECONFLICT: each of the ids was refused. */
int act_page(struct outbox_store *store, const struct outbox_act *act,
	     struct outbox_acted *ret_acted, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * All that the filter selects, page by page. ret_acted is kept up to date, also when it fails in the middle;
 * ret_acted->more: it was ended early.
 */
int act_all(struct outbox_store *store, const struct outbox_act *act, const struct bulk *bulk,
	    struct outbox_acted *ret_acted, struct outbox_error *err) OUTBOX_MUSTCHECK;

struct act_pause {
	const char *target;
	bool pause; /* false: resume */
	bool dry_run;
	const char *actor, *reason;
};

/* stats: the store's, just now. ret_changed: false, it was so before. */
int act_pause(struct outbox_store *store, const struct outbox_stats *stats,
	      const struct act_pause *how, bool *ret_changed,
	      struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
