/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <outbox/transport.h>

#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE_BYTES_MAX (1 << 20)

struct page {
	char *text, *at;
	struct page_row row;
};

static char *read_all(const char *path)
{
	char *text = calloc(1, PAGE_BYTES_MAX);
	FILE *file = fopen(path, "re");

	if (!text || !file)
		fail_msg("%s cannot be read", path);
	if (fread(text, 1, PAGE_BYTES_MAX - 1, file) == PAGE_BYTES_MAX - 1)
		fail_msg("%s is too long", path);
	fclose(file);
	return text;
}

/* Behind the next line end; the line is ended there. */
static char *cut_line(char *line)
{
	char *end = strchr(line, '\n');

	if (!end)
		return line + strlen(line);
	*end = '\0';
	return end + 1;
}

struct page *page_open(const char *name, const char *heading)
{
	struct page *page = calloc(1, sizeof(*page));
	char path[500], line[100];

	assert_non_null(page);
	snprintf(path, sizeof(path), "%s/%s.md", PAGES, name);
	page->text = read_all(path);
	snprintf(line, sizeof(line), "\n## %s\n", heading);
	page->at = strstr(page->text, line);
	page->at = page->at ? strstr(page->at, "\n|") : NULL;
	if (!page->at)
		fail_msg("%s has no table under \"## %s\"", path, heading);
	/* Its head and the line below. */
	page->at++;
	cut_line(page->at);
	page->at += strlen(page->at) + 1;
	if (strncmp(page->at, "|--", 3) != 0)
		fail_msg("%s: the table under \"## %s\" has no head", path, heading);
	page->at = cut_line(page->at);
	return page;
}

void page_close(struct page *page)
{
	free(page->text);
	free(page);
}

static char *trim(char *cell)
{
	size_t length;

	cell += strspn(cell, " `");
	length = strlen(cell);
	while (length > 0 && strchr(" `", cell[length - 1]))
		cell[--length] = '\0';
	return cell;
}

const struct page_row *page_next(struct page *page)
{
	char *cell = page->at;
	size_t n = 0;

	if (*cell != '|')
		return NULL;
	page->at = cut_line(cell);
	for (size_t i = 0; i < PAGE_CELLS_MAX; i++)
		page->row.cells[i] = cell + strlen(cell);
	for (char *end; (end = strchr(++cell, '|')); cell = end) {
		*end = '\0';
		if (n == PAGE_CELLS_MAX)
			fail_msg("a row has too many cells");
		page->row.cells[n++] = trim(cell);
	}
	return &page->row;
}

struct word {
	const char *text;
	int value;
};

static int find(const struct word *words, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(words[i].text, text) == 0)
			return words[i].value;
	fail_msg("\"%s\" is no word for a table", text);
	return -1;
}

int page_verdict(const char *text)
{
	static const struct word words[] = {
		{ "-", OUTBOX_VERDICT_UNSET },   { "ACKED", OUTBOX_ACKED },
		{ "REJECTED", OUTBOX_REJECTED }, { "RETRY", OUTBOX_RETRY },
		{ "UNKNOWN", OUTBOX_UNKNOWN },
	};

	return find(words, ARRAY_SIZE(words), text);
}

int page_status(const char *text)
{
	static const struct word words[] = {
		{ "-", OUTBOX_OK },
		{ "ECONN", OUTBOX_ECONN },
		{ "EAUTH", OUTBOX_EAUTH },
		{ "EFULL", OUTBOX_EFULL },
		{ "EGONE", OUTBOX_EGONE },
		{ "EPROTO", OUTBOX_EPROTO },
		{ "ECONFIG", OUTBOX_ECONFIG },
		{ "ENOMEM", OUTBOX_ENOMEM },
		{ "ETIMEDOUT", OUTBOX_ETIMEDOUT },
	};

	return find(words, ARRAY_SIZE(words), text);
}
