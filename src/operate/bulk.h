/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_BULK_H
#define OPERATE_BULK_H

/* Long work goes page by page. Whoever asked for it may see how far it is, and may end it between two pages. */

#include <outbox/clock.h>

#include <stdbool.h>
#include <stdint.h>

struct bulk {
	/* So much is done. NULL: nobody looks. */
	void (*progress)(void *context, int64_t done);
	/* Between two pages: wait at least this long. True: end here. NULL: only wait. */
	bool (*rest)(void *context, int64_t done, outbox_time least);
	void *context;
};

/* Both on a bulk that may be NULL. */
void bulk_progress(const struct bulk *bulk, int64_t done);
bool bulk_rest(const struct bulk *bulk, int64_t done, outbox_time least);

#endif
