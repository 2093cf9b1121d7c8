/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json_out.h"

int json_print(json_t *value, struct outbox_error *err)
{
	int r = -1;

	if (value) {
		r = json_dumpf(value, stdout, JSON_STYLE);
		fputc('\n', stdout);
		json_decref(value);
	}
	if (r && !ferror(stdout))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory while writing JSON");
	return OUTBOX_OK; /* main() reports what stdout could not take */
}
