/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_SECRETS_H
#define ADMIN_SECRETS_H

struct buf;

/* Append text with *** in place of every secret that journal_hide() was told. */
void hide_secrets(const char *text, struct buf *out);

#endif
