/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_RUNBOOK_H
#define OPERATE_RUNBOOK_H

/* Where people read what to do about an alert. */

#include <stdbool.h>
#include <stddef.h>

#define RUNBOOK_LINK_MAX 320

/* "https://wiki.example/outbox#failed". page: health.runbook; NULL: the page that was installed with the program. */
void runbook_link(const char *page, const char *rule, char out[RUNBOOK_LINK_MAX]);

/* The section of an alert as the page has it, from its heading to the next; borrowed. False: it has none. */
bool runbook_section(const char *rule, const char **ret_text, size_t *ret_size);

/* The alerts of the page one by one, from NULL on; NULL: there are no more. The name is borrowed and not terminated. */
const char *runbook_next(const char *at, const char **ret_rule, size_t *ret_length);

#endif
