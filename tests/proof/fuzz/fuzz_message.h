/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_MESSAGE_H
#define FUZZ_MESSAGE_H

#include "fuzz.h"

#include <outbox/message.h>

#define FUZZ_HEADERS (OUTBOX_HEADERS_MAX + 4)

/* A message of any kind, legal or not. */
struct fuzz_message {
	struct outbox_message message;
	struct outbox_header headers[FUZZ_HEADERS];
};

/*
 * Two bytes say which texts and times are there, then the number of headers, kind, priority, the
 * times, the texts, the headers; the rest is the payload. Strings end with a NUL.
 */
void input_message(struct input *in, struct fuzz_message *ret_message);

#endif
