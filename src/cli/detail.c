/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/detail.h"

#include "base/buf.h"

#include <jansson.h>

void detail_text(struct buf *out, const char *detail)
{
	json_auto_t *object = json_loads(detail, 0, NULL);
	const char *name, *before = "before: ";
	json_t *value;

	if (!json_is_object(object)) {
		buf_text(out, detail);
		return;
	}
	json_object_foreach(object, name, value)
	{
		if (json_is_string(value))
			buf_printf(out, "%s%s %s", before, name, json_string_value(value));
		else if (json_is_integer(value))
			buf_printf(out, "%s%s %lld", before, name,
				   (long long)json_integer_value(value));
		else
			continue;
		before = ", ";
	}
}
