/* SPDX-License-Identifier: Apache-2.0 */
#include "store/check.h"

#include <stdarg.h>
#include <stdio.h>

void check_say(const struct check_report *to, enum check_level level, const char *subject,
	       const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	to->say(to->context, (int)level, subject, text);
}
