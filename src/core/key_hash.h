/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_KEY_HASH_H
#define CORE_KEY_HASH_H

/*
 * The hash of a message's key: a number from its key (or its id when it has none) that is the same on every
 * store, in every version, also in plain SQL without extensions, since a person's `sqlite3` must be
 * able to compute it. Hence a sum over few bytes: KEY_HASHES is 4096,
 *     (7 * length + sum of byte[i] * (2*i + 3) for the last 12 bytes (i = 0 is the last)
 *                 + sum of byte[j] * (8*j + 30) for the first 4 bytes (j = 0 is the first)) mod 4096
 * over the UTF-8 bytes. The first bytes' weights are even: in a short key a byte counts at both ends, and
 * two odd weights would add up to an even one, which puts all four-digit keys in one lane. A lane is that number mod lanes,
 * so doubling the lanes splits each lane in two. The schemas call it slot.
 */

#define KEY_HASHES 4096

int key_hash(const char *key_or_id);

#endif
