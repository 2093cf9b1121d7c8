/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_BROKER_H
#define TRANSPORT_BROKER_H

/* What every broker's driver begins with, and how it is opened and closed. */

#include <outbox/transport.h>

#include "base/buf.h"
#include "transport/endpoint.h"

/* The first member of a driver's own struct. */
struct broker {
	struct outbox_transport base;
	struct outbox_clock *clock;
	struct endpoint endpoint;
	struct outbox_encoder *encoder;
	int envelope;     /* the encoder's; configure() may set another default than binary */
	char shown[330];  /* "kafka host:port,host:port", for people */
	char client[330]; /* "outbox TARGET": what the broker's lists of connections show */
};

struct broker_driver {
	const struct outbox_transport_ops *ops; /* its schemes but the first mean TLS */
	const char *title;                      /* "NATS", for people */
	size_t size;                            /* of the driver's struct */
	const char *attribute_prefix;           /* as in outbox_encoder_new() */
	const char *options;                    /* what configure() asks the URL for, for people */
	/*
	 * Set the driver's own members up, by what the URL says besides the endpoint. Unknown options are found
	 * afterwards. When it fails, the driver's close() is called.
	 */
	int (*configure)(struct broker *broker, struct url *url,
			 const struct outbox_transport_config *config, struct outbox_error *err);
};

/* open() of a driver. */
int broker_open(const struct broker_driver *driver, const struct outbox_transport_config *config,
		struct outbox_transport **ret_transport, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The end of a driver's close(): frees this part, and the driver's struct with it. */
void broker_close(struct broker *broker);

/* How much time there is until the deadline; 0 or less: it has passed. */
outbox_time broker_time_left(const struct broker *broker, outbox_time deadline);

/* What check() found, one remark after the other. */
enum finding { FINDING_OK, FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

struct findings {
	enum finding worst;
	struct buf text; /* the remarks, with semicolons between them */
};

#define FINDINGS_INIT                  \
	{                              \
		.text = BUF_INIT(2048) \
	}

void findings_add(struct findings *findings, enum finding level, const char *format, ...)
	OUTBOX_PRINTF(3, 4);
/* The end of check(): the remarks as its text, or with r why there are none. Returns its level and frees them. */
int findings_finish(struct findings *findings, int r, const struct outbox_error *err, char *text,
		    size_t size);

/* Before a batch and a check. ECONN: not connected; ETIMEDOUT: the deadline has passed. */
int broker_ready(const struct broker *broker, bool connected, outbox_time deadline,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
