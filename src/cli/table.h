/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

/*
 * A table for people that always fits its width: columns take what they need, and when that is too
 * much the widest ones that may be cut are cut. When that is not enough either, columns that may be
 * cut are left out, the last first, but never the first column. Cells are escaped. Printing keeps the
 * columns' widths, so the next page of a long list lines up with the first.
 */

#include "base/buf.h"
#include "cli/cli.h"

#include <stdio.h>

#define TABLE_COLUMNS_MAX 12

enum cell_colour { PLAIN = 0, BOLD, RED, GREEN, YELLOW, DIM };

struct column {
	const char *title; /* NULL: this column is left out; not the first */
	bool right;
	size_t min; /* may be cut down to this; 0: never cut */
};

struct table {
	const struct column *columns;
	size_t n_columns;
	size_t width;
	bool colour;
	size_t widths[TABLE_COLUMNS_MAX]; /* 0 before the first printing */
	bool dropped[TABLE_COLUMNS_MAX];  /* left out: without a title, or for lack of room */
	size_t gap;
	struct buf cells; /* colour byte, text, NUL for each cell; a note is a row of its own */
};

void table_init(struct table *table, const struct cli *cli, const struct column *columns, size_t n);
void table_deinit(struct table *table);

/* The next cell of the row; NULL is shown as "-". */
void table_cell(struct table *table, int colour, const char *text);
void table_cellf(struct table *table, int colour, const char *format, ...) OUTBOX_PRINTF(3, 4);

/* A line of its own below the last row, indented and cut to the width. */
void table_note(struct table *table, const char *text);

/* Print the rows so far, with titles the first time, and forget them. */
void table_print(struct table *table, FILE *stream);

/* Colour on and off, for lines outside tables. "" without colour. */
const char *colour_on(const struct cli *cli, int colour);
const char *colour_off(const struct cli *cli);

#endif
