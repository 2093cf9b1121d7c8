/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_ALERTS_H
#define TELEMETRY_ALERTS_H

/* From findings to alerts: what begins and what ends goes to the journal and to all who are to be told. */

#include "operate/health.h"

struct alerts;

struct alerts *alerts_new(void); /* NULL: out of memory */
struct alerts *alerts_free(struct alerts *alerts);

/* What fires now, and who is to be told by this configuration. Never waits for anybody. */
void alerts_note(struct alerts *alerts, const struct config *config,
		 const struct health_finding *findings, size_t count, outbox_time wall);

#endif
