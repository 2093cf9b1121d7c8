/* SPDX-License-Identifier: Apache-2.0 */

#include "base/log.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 1024

void log_line(const struct log *log, enum log_level level, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;
	char *c;
	int n;

	if (!log || !log->sink)
		return;
	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(line)) {
		size_t cut = utf8_cut(line, sizeof(line) - 1, sizeof(line) - 4);

		memcpy(line + cut, "...", 4);
	}
	/* One call, one line, whatever the arguments hold. */
	for (c = line; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = ' ';
	}
	log->sink(log->context, (int)level, line);
}
