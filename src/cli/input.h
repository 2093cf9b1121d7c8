/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "base/buf.h"

/*
 * The value of an option that takes its data from elsewhere: "@file", "-" for stdin, anything else is
 * the data itself. out is made with the maximum; EINVAL when there is more.
 */
int input_read(const char *option, const char *text, struct buf *out,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
