/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/health.h"

const char *health_level_name(enum health_level level)
{
	switch (level) {
	case LEVEL_HEALTHY:
		return "healthy";
	case LEVEL_DEGRADED:
		return "degraded";
	case LEVEL_UNHEALTHY:
		return "unhealthy";
	}
	return "unknown";
}
