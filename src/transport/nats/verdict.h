/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NATS_VERDICT_H
#define NATS_VERDICT_H

#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an error of JetStream means. docs/transports/nats.md has the same table in words. */
enum verdict_class {
	CLASS_RETRY, /* this message was refused for now */
	CLASS_PLACE, /* its subject's stream does not take it: RETRY, unless it is the target's only subject */
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
	int64_t seq; /* of a duplicate: where the stream has it */
	char stream[256];
	char description[300];
};

/*
 * EPROTO: it is no such answer. What is neither an error nor names a stream and a place in it is not taken as an
 * acknowledgement.
 */
int answer_parse(const char *json, size_t size, struct answer *ret_answer,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * The answer to STREAM.MSG.GET: the subject that the message is stored under. ENOTFOUND with JetStream's code and
 * words: there is no such message, or it does not tell; EPROTO: it is no such answer.
 */
int stored_parse(const char *json, size_t size, char *ret_subject, size_t subject_size,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
