/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include "base/printable.h"

#include <stdarg.h>
#include <string.h>

#define CELLS_MAX ((size_t)64 << 20)
#define NOTE_INDENT 4
#define NOTE 'n' /* in place of a colour byte: a note, not a cell */

static const char *const codes[] = { "", "\033[1m", "\033[31m", "\033[32m", "\033[33m", "\033[2m" };

const char *colour_on(const struct cli *cli, int colour)
{
	return cli->colour ? codes[colour] : "";
}

const char *colour_off(const struct cli *cli)
{
	return cli->colour ? "\033[0m" : "";
}

void table_init(struct table *table, const struct cli *cli, const struct column *columns, size_t n)
{
	*table = (struct table){ .columns = columns,
				 .n_columns = n,
				 .width = cli->width,
				 .colour = cli->colour,
				 .cells = BUF_INIT(CELLS_MAX) };
	for (size_t i = 0; i < n; i++)
		table->dropped[i] = !columns[i].title;
}

void table_deinit(struct table *table)
{
	buf_deinit(&table->cells);
}

static void add(struct table *table, char mark, const char *text, size_t columns)
{
	buf_char(&table->cells, mark);
	printable_append(&table->cells, text, strlen(text), columns);
	buf_char(&table->cells, '\0');
}

void table_cell(struct table *table, int colour, const char *text)
{
	add(table, (char)colour, text && *text ? text : "-", table->width);
}

void table_cellf(struct table *table, int colour, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	table_cell(table, colour, text);
}

void table_note(struct table *table, const char *text)
{
	add(table, NOTE, text, table->width == UNCUT ? UNCUT : table->width - NOTE_INDENT);
}

static const char *next(const char *cell)
{
	return cell + strlen(cell + 1) + 2;
}

static void measure(struct table *table)
{
	const char *cell = table->cells.data, *end = cell + table->cells.size;
	size_t column = 0;

	for (size_t i = 0; i < table->n_columns; i++)
		table->widths[i] = table->columns[i].title ? strlen(table->columns[i].title) : 0;
	for (; cell < end; cell = next(cell)) {
		size_t wide;

		if (*cell == NOTE)
			continue;
		wide = printable_width(cell + 1);
		if (wide > table->widths[column])
			table->widths[column] = wide;
		column = column + 1 < table->n_columns ? column + 1 : 0;
	}
}

static size_t total(const struct table *table)
{
	size_t sum = 0;

	for (size_t i = 0; i < table->n_columns; i++)
		if (!table->dropped[i])
			sum += table->widths[i] + (sum ? table->gap : 0);
	return sum;
}

/* Take one column off the widest that may still be cut. */
static bool shrink(struct table *table)
{
	size_t widest = table->n_columns;

	for (size_t i = 0; i < table->n_columns; i++) {
		if (!table->columns[i].min || table->dropped[i] ||
		    table->widths[i] <= table->columns[i].min)
			continue;
		if (widest == table->n_columns || table->widths[i] > table->widths[widest])
			widest = i;
	}
	if (widest == table->n_columns)
		return false;
	table->widths[widest]--;
	return true;
}

static bool drop(struct table *table)
{
	for (size_t i = table->n_columns; i-- > 1;) {
		if (!table->columns[i].min || table->dropped[i])
			continue;
		table->dropped[i] = true;
		measure(table); /* the others get their room back */
		return true;
	}
	return false;
}

static void fit(struct table *table)
{
	measure(table);
	table->gap = 2;
	if (total(table) > table->width)
		table->gap = 1;
	while (total(table) > table->width)
		if (!shrink(table) && !drop(table))
			break;
}

/* Does a column that is printed follow? */
static bool is_last(const struct table *table, size_t column)
{
	do
		column++;
	while (column < table->n_columns && table->dropped[column]);
	return column == table->n_columns;
}

static void print_cell(const struct table *table, FILE *stream, size_t column, int colour,
		       const char *text)
{
	_cleanup_(buf_deinit) struct buf cut = BUF_INIT(CELLS_MAX);
	bool last = is_last(table, column);
	bool paint = table->colour && colour != PLAIN;
	int pad;

	if (table->dropped[column])
		return;
	printable_append(&cut, text, strlen(text), table->widths[column]);
	pad = (int)(table->widths[column] - printable_width(buf_str(&cut)));
	if (table->columns[column].right)
		fprintf(stream, "%*s", pad, "");
	fprintf(stream, "%s%s%s", paint ? codes[colour] : "", buf_str(&cut), paint ? "\033[0m" : "");
	if (last)
		fputc('\n', stream);
	else
		fprintf(stream, "%*s", (table->columns[column].right ? 0 : pad) + (int)table->gap,
			"");
}

void table_print(struct table *table, FILE *stream)
{
	const char *cell = table->cells.data, *end = cell + table->cells.size;
	size_t column = 0;

	if (!cell)
		return;
	if (!table->gap) {
		fit(table);
		for (size_t i = 0; i < table->n_columns; i++)
			print_cell(table, stream, i, DIM, table->columns[i].title);
	}
	for (; cell < end; cell = next(cell)) {
		if (*cell == NOTE) {
			fprintf(stream, "%*s%s\n", NOTE_INDENT, "", cell + 1);
			continue;
		}
		print_cell(table, stream, column, *cell, cell + 1);
		column = column + 1 < table->n_columns ? column + 1 : 0;
	}
	buf_clear(&table->cells);
}
