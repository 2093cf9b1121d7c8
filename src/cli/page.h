/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

/* A part of a page of the documentation, for a terminal of 80 columns. */

#include <stddef.h>

/* Paragraphs are filled, commands are indented and, where they are long, continued with a backslash. */
void page_print(const char *markdown, size_t size);

#endif
