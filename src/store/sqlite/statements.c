/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/statements.h"

#define TEXT(name, text) text,
static const char *const texts[] = {
	/* clang-format off */
	STATEMENTS_BASE(TEXT)
	STATEMENTS_RELAY(TEXT)
	STATEMENTS_LOOK(TEXT)
	/* clang-format on */
};

const char *sqlite_statement_text(enum sqlite_statement id)
{
	return texts[id];
}
