/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_NATS_FRAMES_H
#define TRANSPORT_NATS_FRAMES_H

/* The frames of the NATS client protocol, on a connection's bytes. */

#include "transport/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nats_frame_kind { FRAME_INFO, FRAME_MESSAGE, FRAME_PING, FRAME_PONG, FRAME_OK, FRAME_ERROR };

/* What the server said. Texts lie in the wire's memory until the next wire_receive(). */
struct nats_frame {
	enum nats_frame_kind kind;
	const char *text; /* of INFO its JSON, of an error its words, of a message its subject */
	uint64_t sid;     /* the rest: of a message */
	int status;       /* 503: nobody listens; 0: an ordinary message */
	const char *data;
	size_t size;
};

/* The next frame, if it is there. What is none ends the connection. */
bool nats_frame_next(struct wire *wire, struct nats_frame *ret_frame);

#endif
