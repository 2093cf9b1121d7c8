/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BROKERS_PAGE_H
#define BROKERS_PAGE_H

/*
 * The tables in docs/transports/NAME.md, read by tests: what people are told is what is tested. A missing page, section
 * or table fails the test.
 */

#include <stddef.h>

#define PAGE_CELLS_MAX 8

struct page_row {
	char *cells[PAGE_CELLS_MAX]; /* trimmed, without backquotes; "" where the table has none */
};

struct page;

/* The first table under the heading "## heading". */
struct page *page_open(const char *name, const char *heading);
/* The next row behind the head of the table, valid until page_close(); NULL: that was all. */
const struct page_row *page_next(struct page *page);
void page_close(struct page *page);

/* "RETRY" to OUTBOX_RETRY, "ECONN" to OUTBOX_ECONN; "-" is 0. Anything else fails the test. */
int page_verdict(const char *text);
int page_status(const char *text);

#endif
