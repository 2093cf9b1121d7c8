/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/format.h"
#include "relay/registry.h"
#include "store/store.h"
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

#define INDENT 11
#define LINE_MAX_CHARS 80

/* What may stand in front of a URL's colon, added to a list or printed, within the screen's width. */
static void list_schemes(const char *const *schemes, json_t *list, int *column)
{
	for (; *schemes; schemes++) {
		if (!scheme_listed(*schemes))
			continue;
		if (list) {
			json_array_append_new(list, json_text(*schemes));
			continue;
		}
		if (*column + (int)strlen(*schemes) + 2 > LINE_MAX_CHARS)
			*column = printf("\n%*s", INDENT, "") - 1;
		*column += printf(" %s:", *schemes);
	}
}

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	json_t *stores = NULL, *transports = NULL;
	int column = INDENT;

	(void)values;
	if (cli->json) {
		stores = json_array();
		transports = json_array();
	} else {
		printf("outbox %s\nstores:    ", OUTBOX_VERSION);
	}
	for (size_t i = 0; store_drivers[i]; i++)
		list_schemes(store_drivers[i]->schemes, stores, &column);
	if (!cli->json)
		printf("\ntransports:");
	column = INDENT;
	for (size_t i = 0; transport_drivers[i]; i++)
		list_schemes(transport_drivers[i]->schemes, transports, &column);
	if (!cli->json) {
		puts("");
		return OUTBOX_OK;
	}
	return json_print(json_pack("{s:s, s:o, s:o}", "version", OUTBOX_VERSION, "stores", stores,
				    "transports", transports),
			  err);
}

const struct command cmd_version = {
	.name = "version",
	.group = GROUP_HELP,
	.summary = "print the version and the URL schemes of stores and targets",
	.example = "outbox version --json",
	.run = run,
};
