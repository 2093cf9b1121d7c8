/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_PROBLEMS_H
#define CONFIG_PROBLEMS_H

/* Everything that is wrong with a configuration, each with its place: people repair a file once. */

#include "config/node.h"

#define PROBLEMS_MAX 20 /* of more; 21 are kept, too */

struct problem {
	struct place place; /* its name is a copy */
	char name[200];
	char text[640];
};

struct problems {
	struct problem items[PROBLEMS_MAX + 1];
	size_t count;
	size_t more;    /* that were not kept */
	bool no_memory; /* one is not told as it should be */
};

void problems_add(struct problems *problems, const struct place *place, const char *format, ...)
	OUTBOX_PRINTF(3, 4);

/* About a node: its path in front of the text. */
void problems_about(struct problems *problems, const struct node *node, const char *format, ...)
	OUTBOX_PRINTF(3, 4);

/* In the order of the file; what the environment and --set did comes behind. */
void problems_sort(struct problems *problems);

/* outbox.yaml:16:15: targets[1] "partner", rate: ... */
void problem_format(const struct problem *problem, struct buf *out);

#endif
