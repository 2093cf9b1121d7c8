/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ACT_H
#define CLI_ACT_H

/* Requeue, discard and defer are one act with different words: by ids, or by a filter page by page. */

#include "cli/selection.h"

struct act_values {
	struct selection select;
	const char *reason;
	outbox_time until;
	double rate;
	bool dry_run, yes;
};

/* action: enum outbox_action. Ids are the command's words. */
int act_run(struct cli *cli, int action, const struct act_values *given,
	    struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
