/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_REGISTRY_H
#define RELAY_REGISTRY_H

/* Finds the driver for a URL: the application's own first, then the built-in ones. */

#include <outbox/relay.h>

/* registry may be NULL: built-in drivers only. ECONFIG lists the schemes that are known. */
int registry_open_store(const struct outbox_registry *registry, const char *url, bool create,
			struct outbox_clock *clock, struct outbox_random *random,
			struct outbox_store **ret_store, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* config->context is filled in by the registry. */
int registry_open_transport(const struct outbox_registry *registry,
			    struct outbox_transport_config *config,
			    struct outbox_transport **ret_transport,
			    struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
