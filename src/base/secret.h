/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <outbox/error.h>

/* The first line of a file. ECONFIG names the option and the path, never the content. Free with secret_free(). */
int secret_read(const char *option, const char *path, char **ret_secret,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Wiped first. NULL is legal; returns NULL. */
char *secret_free(char *secret);

#endif
