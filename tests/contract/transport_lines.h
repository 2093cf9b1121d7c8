/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_LINES_H
#define TRANSPORT_LINES_H

/* Files of CloudEvents JSON lines, read by jansson and not by our own code. */

#include "transport_contract.h"

#include <sys/types.h>

#define LINES_DIR_MAX 64

/* A new temporary folder, and its removal with everything in it. */
void lines_dir_make(char dir[LINES_DIR_MAX]);
void lines_dir_remove(const char *dir);

/* Every line must be whole, one JSON object, CloudEvents 1.0. A file that is absent is empty. */
void lines_read(const char *path, struct arrivals *arrivals);

/* The file's bytes, NUL-terminated, to be freed; or just its length (-1: absent). */
char *lines_slurp(const char *path, size_t *ret_size);
off_t lines_length(const char *path);

#endif
