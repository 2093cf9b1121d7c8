/* SPDX-License-Identifier: Apache-2.0 */

#include "bench.h"

#include <stdio.h>

void report(const char *bench, const char *what, int batch, const struct series *ours,
	    const struct series *raw)
{
	double mine = series_median(ours), limit = series_median(raw);

	printf("{\"bench\":\"%s\",\"what\":\"%s\",\"batch\":%d,\"unit\":\"messages/s\",\"ours\":%.0f,"
	       "\"raw\":%.0f,\"ratio\":%.3f,\"repeats\":%zu}\n",
	       bench, what, batch, mine, limit, limit > 0 ? mine / limit : 0, ours->count);
	fflush(stdout);
}
