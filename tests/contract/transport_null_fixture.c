/* SPDX-License-Identifier: Apache-2.0 */
/* null: under the transport contract. */

#include "transport_case.h"

extern const struct outbox_transport_ops null_transport_ops;

static void *setup(void)
{
	return NULL;
}

static void teardown(void *state)
{
	(void)state;
}

static const char *url(void *state)
{
	(void)state;
	return "null:";
}

static const struct bad_url bad_urls[] = {
	{ "null:somewhere", "null:" },
	{ "null://host/", "null:" },
	{ "null:?fast=yes", "fast" },
	{ NULL, NULL },
};

static const struct transport_fixture fixture = {
	.name = "transport_null",
	.ops = &null_transport_ops,
	.flags = CONTRACT_NO_READ_BACK | CONTRACT_NO_OUTAGE | CONTRACT_NO_ENVELOPE |
		 CONTRACT_NO_MISSING,
	.setup = setup,
	.teardown = teardown,
	.url = url,
	.bad_urls = bad_urls,
};

int main(void)
{
	return transport_contract_run(&fixture);
}
