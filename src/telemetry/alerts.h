/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_ALERTS_H
#define TELEMETRY_ALERTS_H

/* From findings to alerts: what begins and what ends goes to the journal and to every webhook. */

#include "operate/sample.h"

struct alerts;

struct alerts *alerts_new(void); /* NULL: out of memory */
struct alerts *alerts_free(struct alerts *alerts);

/* What fires now, what fired before (NULL: nothing), and the webhooks of this configuration. Never waits for anybody. */
void alerts_note(struct alerts *alerts, const struct config *config, const struct sample *before,
		 const struct sample *now);

#endif
