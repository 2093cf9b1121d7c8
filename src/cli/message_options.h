/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MESSAGE_OPTIONS_H
#define CLI_MESSAGE_OPTIONS_H

/* Options that give a message, or a part of one. */

#include "base/buf.h"
#include "cli/cli.h"

#define PAYLOAD_BUFFER_MAX (OUTBOX_PAYLOAD_MAX + 1) /* so that validation tells the limit */

/* --header NAME=VALUE, each; texts from the arena. */
int headers_of_options(struct cli *cli, const struct list *given,
		       struct outbox_header headers[LIST_MAX],
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* "content_type: ..." is a field of the message; here it is --content-type. */
void error_names_option(const struct field *options, size_t n_options, struct outbox_error *err);

/*
 * The value of an option that takes its data from elsewhere: "@file", "-" for stdin, anything else is
 * the data itself. out is made with the maximum; EINVAL when there is more.
 */
int input_read(const char *option, const char *text, struct buf *out,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
