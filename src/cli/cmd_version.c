/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json_out.h"
#include "store/store.h"
#include "transport/transport.h"

#include <stdio.h>

static int run(struct cli *cli, void *values, struct outbox_error *err)
{
	json_t *stores, *transports;

	(void)values;
	if (!cli->json) {
		printf("outbox %s\nstores:    ", OUTBOX_VERSION);
		for (size_t i = 0; store_drivers[i]; i++)
			printf(" %s", store_drivers[i]->name);
		printf("\ntransports:");
		for (size_t i = 0; transport_drivers[i]; i++)
			printf(" %s", transport_drivers[i]->name);
		puts("");
		return OUTBOX_OK;
	}
	stores = json_array();
	transports = json_array();
	for (size_t i = 0; store_drivers[i]; i++)
		json_array_append_new(stores, json_text(store_drivers[i]->name));
	for (size_t i = 0; transport_drivers[i]; i++)
		json_array_append_new(transports, json_text(transport_drivers[i]->name));
	return json_print(json_pack("{s:s, s:o, s:o}", "version", OUTBOX_VERSION, "stores", stores,
				    "transports", transports),
			  err);
}

const struct command cmd_version = {
	.name = "version",
	.group = GROUP_HELP,
	.summary = "print the version and the drivers built in",
	.example = "outbox version --json",
	.run = run,
};
