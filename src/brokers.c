/* SPDX-License-Identifier: Apache-2.0 */

#include <outbox/brokers.h>
#include <outbox/outbox.h>

#include "transport/transport.h"

#include <string.h>

int outbox_brokers_register(struct outbox_registry *registry, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	/* The drivers have copies of what both libraries share, down to the layout of private structs. */
	if (strcmp(outbox_version(), OUTBOX_VERSION) != 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "liboutbox-brokers " OUTBOX_VERSION
				   " does not go with liboutbox %s; "
				   "install the same version of both",
				   outbox_version());
	for (size_t i = 0; r == OUTBOX_OK && broker_drivers[i]; i++)
		r = outbox_registry_add_transport(registry, broker_drivers[i], NULL, err);
	return r;
}
