/* SPDX-License-Identifier: Apache-2.0 */
#include "core/redacted_key.h"

#include "core/key_hash.h"

#include <stdint.h>
#include <string.h>

#define LETTERS 12 /* as many as count in a hash: with so many every hash is reached, soon */

void redacted_key(const char *key, char ret_key[REDACTED_KEY_MAX])
{
	static const char alphabet[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	static const char prefix[] = REDACTED_KEY_PREFIX;
	uint64_t state = 1; /* always the same row of tries: the same hash, the same key */
	int hash = key_hash(key);
	char *letters = ret_key + sizeof(prefix) - 1;

	memcpy(ret_key, prefix, sizeof(prefix));
	do {
		for (int i = 0; i < LETTERS; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			letters[i] = alphabet[state >> 58];
		}
		letters[LETTERS] = '\0';
	} while (key_hash(ret_key) != hash);
}
