/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_OTLP_PARTS_H
#define TELEMETRY_OTLP_PARTS_H

/* The exporter from inside. */

#include "base/random.h"
#include "base/wait.h"
#include "telemetry/http_post.h"
#include "telemetry/otlp.h"
#include "telemetry/otlp_json.h"

#define OTLP_SPANS 256 /* in one request */

struct otlp {
	char *metrics_url, *traces_url;
	char **headers; /* "Name: value", NULL behind the last */
	bool metrics, traces;
	outbox_time interval;
	struct log log;
	struct otlp_sender sender;
	struct random_state random;
	struct outbox_clock *clock;
	struct watch *watch;

	struct waiting waiting; /* guards stopping */
	bool stopping;
	_Atomic outbox_time until; /* mono: then no request goes on; OUTBOX_NEVER: not stopping */
	pthread_t thread;
	bool running, can_wait;

	/* the thread's own */
	struct post *post;
	struct otlp_batch batches[OTLP_SPANS]; /* taken out, not sent yet */
	size_t n_batches;
	outbox_time spans_at, metrics_at; /* mono: not before */
	outbox_time not_before, delay;    /* after trouble */
	bool away;
	outbox_time away_since;

	struct otlp_ring ring;
};

/* From now on otlp_look() has something to say. */
void otlp_exists(void);

#endif
