/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_REDIS_WIRE_H
#define TRANSPORT_REDIS_WIRE_H

/* One connection to a Redis server: commands out, replies in, never past a deadline. */

#include <outbox/clock.h>
#include <outbox/error.h>

#include "base/buf.h"
#include "transport/endpoint.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>

struct redis_wire {
	int fd; /* -1: not connected */
	redisReader *reader;
	struct buf out; /* commands; the first `sent` bytes are gone */
	size_t sent;
	struct outbox_clock *clock;
	char shown[300]; /* "redis host:port", for people */
};

void redis_wire_init(struct redis_wire *wire, struct outbox_clock *clock);
/* Drops the connection at once. Legal at any time. */
void redis_wire_close(struct redis_wire *wire);
void redis_wire_deinit(struct redis_wire *wire);

/* Write a command: its number of arguments, each argument (a prefix and the rest, as they are), its end. */
void redis_wire_begin(struct buf *out, size_t n_arguments);
void redis_wire_argument(struct buf *out, const char *prefix, const void *data, size_t size);
void redis_wire_text(struct buf *out, const char *text);
void redis_wire_number(struct buf *out, int64_t number);
void redis_wire_end(struct buf *out);
/* A whole command of words; the list ends with NULL. */
void redis_wire_command(struct redis_wire *wire, const char *const *words);

/* Is everything that was written gone? */
bool redis_wire_flushed(const struct redis_wire *wire);

/* Send what the socket takes now. */
int redis_wire_send(struct redis_wire *wire, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Wait until something can be read, or sent if something waits for that. */
int redis_wire_wait(struct redis_wire *wire, outbox_time deadline, bool *ret_readable,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Read once what there is. ECONN when the server hung up or said too much. *ret_any: was there anything? */
int redis_wire_receive(struct redis_wire *wire, bool *ret_any,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The next whole reply, or NULL; free it with freeReplyObject(). ECONN: not the Redis protocol. */
int redis_wire_next(struct redis_wire *wire, bool arrays, redisReply **ret_reply,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Did a reply begin that has not ended? */
bool redis_wire_in_reply(const struct redis_wire *wire);

/* Bytes that nobody asked for, read or still to be read? Or hung up? ECONN. */
int redis_wire_check_quiet(struct redis_wire *wire, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Send the command that was written and wait for its reply. */
int redis_wire_ask(struct redis_wire *wire, bool arrays, outbox_time deadline,
		   redisReply **ret_reply, struct outbox_error *err) OUTBOX_MUSTCHECK;

static inline void redis_reply_free(redisReply **reply)
{
	if (*reply)
		freeReplyObject(*reply);
}

#endif
