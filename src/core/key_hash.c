/* SPDX-License-Identifier: Apache-2.0 */

#include "core/key_hash.h"

#include <stddef.h>
#include <string.h>

int key_hash(const char *key_or_id)
{
	const unsigned char *bytes = (const unsigned char *)key_or_id;
	size_t length = strlen(key_or_id), i;
	size_t sum = 7 * (length % KEY_HASHES);

	for (i = 0; i < 12 && i < length; i++)
		sum += bytes[length - 1 - i] * (2 * i + 3);
	for (i = 0; i < 4 && i < length; i++)
		sum += bytes[i] * (8 * i + 30);
	return (int)(sum % KEY_HASHES);
}
