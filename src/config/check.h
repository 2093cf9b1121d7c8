/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

/* What no single key can see: values that do not go together. */

#include "config/config.h"

void check_source(const struct node *map, const void *value, struct problems *problems);
void check_target(const struct node *map, const void *value, struct problems *problems);
void check_match(const struct node *map, const void *value, struct problems *problems);
void check_sign(const struct node *map, const void *value, struct problems *problems);
void check_retry(const struct node *map, const void *value, struct problems *problems);
void check_relay(const struct node *map, const void *value, struct problems *problems);

/* Where an alert goes, once its secrets were read; what is still file:PATH is not looked at. */
void check_alert_url(const struct node *map, const struct config_alert *alert,
		     struct problems *problems);

/* The same for OTLP's headers. */
void check_otlp_secrets(const struct node *map, const struct config_otlp *otlp,
			struct problems *problems);

/* Does a URL (with ://) have a user or a password in it? */
bool check_url_has_user(const char *url);

/* Is what follows :// in a URL this very machine? */
bool check_loopback(const char *host);

/* Names that stand twice in a list. */
void check_names(const struct node *list, struct problems *problems);

/* The policy of a target: its preset and what was set over it, and the relay's settings. */
void target_complete(struct config_target *target, const struct config_relay *relay);

/* A URL with a password put in; from the arena. */
int url_add_password(const char *url, const char *password, struct outbox_arena *arena,
		     const char **ret_url, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * A target's URL with all that its driver reads there: the password, and of a web target what sign, bearer and
 * allow_private say. Secrets that were not read yet are left out. password: in place of the target's own.
 */
int target_url(const struct config_target *target, const char *password, struct outbox_arena *arena,
	       const char **ret_url, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
