/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_WRAP_IO_H
#define TORTURE_WRAP_IO_H

#include <stdbool.h>
#include <sys/types.h>

/* Watch this file; what it holds now is durable. NULL: none. */
void disk_watch(const char *path);

/* Would these bytes still be there after a power cut? */
bool disk_durable(off_t from, size_t size);

#endif
