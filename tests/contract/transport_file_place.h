/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_FILE_PLACE_H
#define TRANSPORT_FILE_PLACE_H

/* The place of the file driver's tests: out.jsonl in a temporary folder. */

#include "transport_case.h"

#include <sys/resource.h>

extern const struct transport_fixture file_fixture;

/* For tests outside of the suite: c as the suite would make it. */
void file_case_begin(struct transport_case *c);
void file_case_end(struct transport_case *c);

const char *file_case_path(const struct transport_case *c);
/* Replace what is in the file. */
void file_case_write(const struct transport_case *c, const void *data, size_t size);

/* No file of this process may grow beyond size. */
void limit_size(rlim_t size);

#endif
