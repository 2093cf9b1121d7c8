/* SPDX-License-Identifier: Apache-2.0 */
/* docs/runbook.md is in the program, too: at night nobody should have to look for the right version of a file. */
#include "operate/runbook.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define HEADING "\n## "

extern const char runbook_page[];

void runbook_link(const char *page, const char *rule, char out[RUNBOOK_LINK_MAX])
{
	snprintf(out, RUNBOOK_LINK_MAX, "%.250s#%.60s", page ? page : OUTBOX_RUNBOOK, rule);
}

const char *runbook_next(const char *at, const char **ret_rule, size_t *ret_length)
{
	while ((at = strstr(at ? at : runbook_page, HEADING))) {
		at += strlen(HEADING);
		*ret_rule = at;
		*ret_length = strcspn(at, "\n");
		/* an alert's name is one word in small letters, which the page's other headings are not */
		if (islower((unsigned char)*at) && !memchr(at, ' ', *ret_length))
			break;
	}
	return at;
}

bool runbook_section(const char *rule, const char **ret_text, size_t *ret_size)
{
	const char *name, *end;
	size_t length;

	for (const char *at = NULL; (at = runbook_next(at, &name, &length));) {
		if (length != strlen(rule) || strncmp(name, rule, length) != 0)
			continue;
		end = strstr(at, HEADING);
		*ret_text = at - strlen("## ");
		*ret_size = (end ? (size_t)(end - at) : strlen(at)) + strlen("## ");
		return true;
	}
	return false;
}
