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

/* Is there a driver, and would it understand the URL? Those who do not say are not asked. Connects to nothing. */
int registry_check_store(const struct outbox_registry *registry, const char *url,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* handler: needs functions of the program's own, which only come with a registry. */
bool scheme_usable(const char *scheme);

/* To be offered to people: rediss: is known only in order to say what to do instead. */
bool scheme_listed(const char *scheme);

#endif
