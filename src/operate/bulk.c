/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/bulk.h"

#include "base/wait.h"

void bulk_progress(const struct bulk *bulk, int64_t done)
{
	if (bulk && bulk->progress)
		bulk->progress(bulk->context, done);
}

bool bulk_rest(const struct bulk *bulk, int64_t done, outbox_time least)
{
	struct waiting waiting;

	if (bulk && bulk->rest)
		return bulk->rest(bulk->context, done, least);
	if (least <= 0 || waiting_init(&waiting, NULL))
		return false;
	waiting_lock(&waiting);
	waiting_wait(&waiting, least);
	waiting_unlock(&waiting);
	waiting_deinit(&waiting);
	return false;
}
