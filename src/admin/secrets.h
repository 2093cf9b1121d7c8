/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_SECRETS_H
#define ADMIN_SECRETS_H

#include <stddef.h>

struct buf;

/* Append text with *** in place of every secret that journal_hide() was told. */
void hide_secrets(const char *text, struct buf *out);

/* The same in place: of what a server or a library said, before it is kept or shown. */
void hide_secrets_in(char *text, size_t size);

#endif
