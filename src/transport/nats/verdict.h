/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NATS_VERDICT_H
#define NATS_VERDICT_H

#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>

/* What an error of JetStream means. docs/transports/nats.md has the same table in words. */
enum verdict_class {
	CLASS_RETRY,  /* this message was refused for now */
	CLASS_REJECT, /* it will never be accepted */
	CLASS_FULL,   /* there is no room */
	CLASS_AWAY    /* the stream or the cluster cannot work now */
};

/* A JetStream error code, err_code in its answers: 10054 ... Codes that are not in the table: CLASS_RETRY. */
enum verdict_class verdict_of(int code);

/* What JetStream answered to a message. */
struct answer {
	int code; /* err_code; 0: it was stored */
	bool duplicate;
	char stream[256];
	char description[300];
};

/*
 * EPROTO: it is no such answer. What is neither an error nor names a stream and a place in it is not taken as an
 * acknowledgement.
 */
int answer_parse(const char *json, size_t size, struct answer *ret_answer,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
