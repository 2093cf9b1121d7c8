/* SPDX-License-Identifier: Apache-2.0 */
/* docs/runbook.md is in the program, too: at night nobody wants to look for a file of the right version. */
#include "operate/runbook.h"

#include <stdio.h>
#include <string.h>

#define HEADING "\n## "

extern const char runbook_page[];

void runbook_link(const char *page, const char *rule, char out[RUNBOOK_LINK_MAX])
{
	snprintf(out, RUNBOOK_LINK_MAX, "%.250s#%.60s", page ? page : OUTBOX_RUNBOOK, rule);
}

bool runbook_section(const char *rule, const char **ret_text, size_t *ret_size)
{
	const char *at = runbook_page, *end;
	size_t length = strlen(rule);

	/* an alert's name is one word, which the page's other headings are not */
	if (strchr(rule, ' '))
		return false;
	while ((at = strstr(at, HEADING))) {
		at += strlen(HEADING);
		if (strncmp(at, rule, length) != 0 || at[length] != '\n')
			continue;
		end = strstr(at, HEADING);
		*ret_text = at - strlen("## ");
		*ret_size = (end ? (size_t)(end - at) : strlen(at)) + strlen("## ");
		return true;
	}
	return false;
}
