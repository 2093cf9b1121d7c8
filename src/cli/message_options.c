/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/message_options.h"

#include <string.h>

int headers_of_options(struct cli *cli, const struct list *given,
		       struct outbox_header headers[LIST_MAX], struct outbox_error *err)
{
	for (size_t i = 0; i < given->count; i++) {
		char name[256];
		int r = pair_split("header", given->items[i], name, sizeof(name), &headers[i].value,
				   err);

		if (r)
			return r;
		headers[i].name = outbox_arena_text(cli->arena, name);
		if (!headers[i].name)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	return OUTBOX_OK;
}

void error_names_option(const struct option *options, size_t n_options, struct outbox_error *err)
{
	struct outbox_error found = *err;
	size_t length = strcspn(found.message, ":");
	char name[32];

	if (length >= sizeof(name))
		return;
	memcpy(name, found.message, length);
	name[length] = '\0';
	for (size_t i = 0; i < length; i++)
		if (name[i] == '_')
			name[i] = '-';
	for (size_t i = 0; i < n_options; i++)
		if (strcmp(options[i].name, name) == 0)
			outbox_fail_native(err, found.status, found.native, "--%s%.400s", name,
					   found.message + length);
}
