/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_SECRETS_H
#define CORE_SECRETS_H

#include <stddef.h>

struct buf;

/*
 * From now on this text is never written: servers and libraries may quote what they were sent. One of fewer than 4
 * characters hides nothing that could not be guessed, and would hide half of every line.
 */
void secrets_hide(const char *secret);

/* The same for every password in a URL. */
void secrets_hide_url(const char *url);

/* Append text with *** in place of every secret that secrets_hide() was told. */
void hide_secrets(const char *text, struct buf *out);

/* The same in place: of what a server or a library said, before it is kept or shown. */
void hide_secrets_in(char *text, size_t size);

#endif
