/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PAYLOAD_H
#define CLI_PAYLOAD_H

#include "cli/cli.h"

/*
 * Show a payload to a person: JSON indented (numbers and strings exactly as they are stored), other
 * text as it is, bytes in hex; escaped, cut to the width, and to max_lines unless that is 0.
 */
void payload_print(const struct cli *cli, const struct outbox_message *message, size_t max_lines);

#endif
