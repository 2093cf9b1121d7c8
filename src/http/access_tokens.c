/* SPDX-License-Identifier: Apache-2.0 */
#include "http/access_tokens.h"

#include "base/text.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS_MAX 100
#define TOKEN_MIN 43 /* 256 bits in base64 */
#define TOKEN_MAX 200
#define WORDS_MAX 4

struct access_tokens {
	size_t count;
	struct access_token items[TOKENS_MAX];
};

static const char *parse_token(const char *text, unsigned char digest[32])
{
	if (strncmp(text, "sha256:", 7) == 0)
		return strlen(text + 7) == 64 && hex_bytes(text + 7, digest, 32)
			       ? NULL
			       : "sha256: must be followed by 64 hexadecimal digits in lower case";
	if (strlen(text) < TOKEN_MIN)
		return "the token is too short to be safe; make one with: openssl rand -base64 32";
	if (strlen(text) > TOKEN_MAX || text[strspn(text, TOKEN_CHARACTERS)])
		return "the token is too long or has a character that is not allowed in one; make one with: "
		       "openssl rand -base64 32";
	SHA256((const unsigned char *)text, strlen(text), digest);
	return NULL;
}

/* NULL, or what is wrong with the line. Never with a word of it: it may be a token in the wrong place. */
static const char *parse_line(char *words[WORDS_MAX], size_t count, struct access_token *token)
{
	*token = (struct access_token){ .expires = OUTBOX_NEVER };
	if (count < 3)
		return "a line must be NAME ROLE TOKEN [EXPIRES]";
	if (strlen(words[0]) >= sizeof(token->name) ||
	    words[0][strspn(words[0],
			    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")])
		return "the name must be 1 to 64 letters, digits, '-', '_' or '.'";
	memcpy(token->name, words[0], strlen(words[0]) + 1);
	if (strcmp(words[1], "read") == 0)
		token->role = ROLE_READ;
	else if (strcmp(words[1], "operate") == 0)
		token->role = ROLE_OPERATE;
	else
		return "the role must be read or operate";
	if (count == 4 && (words[3][0] == '+' || time_parse(words[3], 0, &token->expires, NULL)))
		return "the expiry must be a time like 2027-01-31T00:00:00Z";
	return parse_token(words[2], token->digest);
}

static bool has_name(const struct access_tokens *tokens, const char *name)
{
	for (size_t i = 0; i < tokens->count; i++)
		if (strcmp(tokens->items[i].name, name) == 0)
			return true;
	return false;
}

static const char *add_line(struct access_tokens *tokens, char *line)
{
	char *words[WORDS_MAX], *rest = NULL;
	struct access_token token;
	size_t count = 0;
	const char *wrong;

	for (char *word = strtok_r(line, " \t\r", &rest); word;
	     word = strtok_r(NULL, " \t\r", &rest)) {
		if (count == 0 && word[0] == '#')
			return NULL;
		if (count == WORDS_MAX)
			return "a line must be NAME ROLE TOKEN [EXPIRES]";
		words[count++] = word;
	}
	if (!count)
		return NULL;
	wrong = parse_line(words, count, &token);
	if (!wrong && has_name(tokens, token.name))
		wrong = "another line has this name";
	if (!wrong && tokens->count == TOKENS_MAX)
		wrong = "there are too many tokens";
	if (!wrong)
		tokens->items[tokens->count++] = token;
	return wrong;
}

int access_tokens_parse(const char *text, const char *path, struct access_tokens **ret_tokens,
			struct outbox_error *err)
{
	_cleanup_(access_tokens_freep) struct access_tokens *tokens = calloc(1, sizeof(*tokens));
	char line[1024];

	if (!tokens)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (int number = 1; *text; number++) {
		size_t size = strcspn(text, "\n");
		const char *wrong = "the line is too long";

		if (size < sizeof(line)) {
			memcpy(line, text, size);
			line[size] = '\0';
			wrong = add_line(tokens, line);
			explicit_bzero(line, sizeof(line));
		}
		if (wrong)
			return outbox_fail(err, OUTBOX_ECONFIG, "%s:%d: %s", path, number, wrong);
		text += size + (text[size] == '\n');
	}
	if (!tokens->count)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "%s: has no token; remove the file, and the next start creates one",
				   path);
	*ret_tokens = tokens;
	tokens = NULL;
	return OUTBOX_OK;
}

struct access_tokens *access_tokens_free(struct access_tokens *tokens)
{
	if (tokens)
		explicit_bzero(tokens, sizeof(*tokens));
	free(tokens);
	return NULL;
}

const struct access_token *access_tokens_check(const struct access_tokens *tokens, const char *text,
					       outbox_time now)
{
	const struct access_token *found = NULL;
	unsigned char digest[32];

	SHA256((const unsigned char *)text, strlen(text), digest);
	/* all of them, to the end: how long it takes says nothing about how near a guess came */
	for (size_t i = 0; i < tokens->count; i++)
		if (CRYPTO_memcmp(tokens->items[i].digest, digest, sizeof(digest)) == 0)
			found = &tokens->items[i];
	explicit_bzero(digest, sizeof(digest));
	return found && found->expires > now ? found : NULL;
}

bool access_tokens_hold(const struct access_tokens *tokens, const struct access_token *token,
			outbox_time now)
{
	for (size_t i = 0; i < tokens->count; i++) {
		const struct access_token *item = &tokens->items[i];

		if (memcmp(item->digest, token->digest, sizeof(item->digest)) == 0)
			return item->role >= token->role && item->expires > now;
	}
	return false;
}
