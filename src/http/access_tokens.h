/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_ACCESS_TOKENS_H
#define HTTP_ACCESS_TOKENS_H

/*
 * Who may ask the admin server: a file of lines `NAME ROLE TOKEN [EXPIRES]`, where TOKEN may be sha256:HEX instead,
 * so that the file need not hold the secret. In memory there is only the SHA-256 of each.
 */

#include "base/cleanup.h"
#include "http/http.h"

#include <outbox/clock.h>

/* What a token may consist of (RFC 6750). */
#define TOKEN_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

struct access_tokens;

struct access_token {
	char name[65];
	enum http_role role;
	unsigned char digest[32];
	outbox_time expires; /* wall; OUTBOX_NEVER */
};

/*
 * Read the file; made first, with a token for each role, when there is none. It and its folder must be ours alone:
 * ECONFIG names the path and the remedy, never a token. *ret_made: it was made just now.
 */
int access_tokens_open(const char *path, struct access_tokens **ret_tokens, bool *ret_made,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;
struct access_tokens *access_tokens_free(struct access_tokens *tokens);

DEFINE_CLEANUP(struct access_tokens *, access_tokens_free)

/* Of a file's text; path is for messages. For tests, and for access_tokens_open(). */
int access_tokens_parse(const char *text, const char *path, struct access_tokens **ret_tokens,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Whose token this is; NULL: nobody's, or it has expired. Takes the same time wherever it differs. */
const struct access_token *access_tokens_check(const struct access_tokens *tokens, const char *text,
					       outbox_time now);

/* Is one that was found earlier still there, with its role, and not expired? */
bool access_tokens_hold(const struct access_tokens *tokens, const struct access_token *token,
			outbox_time now);

/* Where the file is when nobody says: $STATE_DIRECTORY, /var/lib/outbox, ~/.local/state/outbox. */
#define TOKENS_PATH_MAX 512
int access_tokens_default_path(char path[TOKENS_PATH_MAX], struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
