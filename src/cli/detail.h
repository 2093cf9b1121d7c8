/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DETAIL_H
#define CLI_DETAIL_H

struct buf;

/*
 * An audit row's detail for people. Stores keep what was before the act as a JSON object; it is shown
 * as "before: state failed, attempts 5, error ..."; anything else as it is.
 */
void detail_text(struct buf *out, const char *detail);

#endif
