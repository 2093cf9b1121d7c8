/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_COMPARE_H
#define CONFIG_COMPARE_H

/* What a reload has to do. */

#include "config/config.h"

struct config_changes {
	bool relay;        /* settings of the engine: every source restarts */
	size_t live;       /* keys that take effect at once */
	char restart[300]; /* keys that take effect with the next start only; "": none */
};

/* Everything but the lists. */
void config_compare(const struct config *before, const struct config *after,
		    struct config_changes *ret_changes);

/* Is this source, with its targets, the same in both? */
bool config_source_same(const struct config *before, const struct config_source *a,
			const struct config *after, const struct config_source *b);

bool config_alert_same(const struct config_alert *a, const struct config_alert *b);

/* Does this source deliver to this target? */
bool config_source_has(const struct config_source *source, const char *target);

#endif
