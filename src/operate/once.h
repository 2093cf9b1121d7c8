/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_ONCE_H
#define OPERATE_ONCE_H

/* Health from a single look. It has no memory: what is true counts at once, and what takes two looks is not judged. */

#include "operate/sample.h"

#include <outbox/store.h>

/* The store's numbers, and where a target is paused what operators did, which tells since when. */
int once_read(struct outbox_store *store, struct outbox_arena *arena,
	      struct health_source *ret_source, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Fills in the sample's time, findings and level. */
int once_judge(const struct health_input *input, struct outbox_arena *arena,
	       struct sample *ret_sample, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
