/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_REDACTED_KEY_H
#define CORE_REDACTED_KEY_H

/* What is left of a key when its message is redacted. */

#define REDACTED_KEY_PREFIX "redacted-"
#define REDACTED_KEY_MAX 32

/* "redacted-LETTERS" with the hash of this key: it says nothing else about it, and every lane, now and after
 * the lanes were doubled, finds the message where it was. */
void redacted_key(const char *key, char ret_key[REDACTED_KEY_MAX]);

#endif
