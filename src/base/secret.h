/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <outbox/error.h>

#include <stdbool.h>

/*
 * The first line of a file that only we can read (0600). Of root's files it is enough that nobody else may write:
 * secrets that are mounted into a container. ECONFIG names the option, the path and the remedy, never the
 * content. Free with secret_free().
 */
int secret_read(const char *option, const char *path, char **ret_secret,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The same, with all lines: a file of credentials, a key. */
int secret_read_file(const char *option, const char *path, char **ret_text,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Is the value of an option of this name nothing for people's eyes? In doubt it is. */
bool secret_is_name(const char *option);

/* Wiped first. NULL is legal; returns NULL. */
char *secret_free(char *secret);

#endif
