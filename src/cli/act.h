/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ACT_H
#define CLI_ACT_H

/* Requeue, discard and defer are one act with different words: by ids, or by a filter page by page. */

#include "base/buf.h"
#include "cli/selection.h"
#include "operate/act.h"

struct act_values {
	struct selection select;
	const char *reason;
	outbox_time until;
	double rate;
	bool dry_run, yes;
};

struct act_verb {
	const char *now, *past; /* "requeue", "requeued" */
};

struct act_work {
	struct cli *cli;
	const struct act_values *given;
	struct outbox_filter filter;
	struct outbox_act act;
	const struct act_verb *verb;
	const struct outbox_stats *stats;
	/* what the filter selects */
	size_t count;
	outbox_time oldest;
	struct buf targets; /* "events, partner" */
};

/* action: enum outbox_action. Ids are the command's words. */
int act_run(struct cli *cli, int action, const struct act_values *given,
	    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* One call of the store for at most limit deliveries. */
int act_work_page(struct act_work *work, size_t limit, struct outbox_acted *ret_acted,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What was done, for people or programs. */
int act_finish(struct act_work *work, const struct outbox_acted *acted,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* act_bulk.c: count, confirm, work off. */
int act_by_filter(struct act_work *work, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
