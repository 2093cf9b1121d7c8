/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_CASE_H
#define TRANSPORT_CASE_H

/* What the cases of the transport contract share. */

#include "transport_contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* One running case: its fixture's place and a batch to fill. */
struct transport_case {
	const struct transport_fixture *fixture;
	void *place;
	struct outbox_arena *arena;
	struct outbox_batch batch;
	struct outbox_message *messages;
	struct outbox_item *items;
	size_t capacity;
	struct arrivals arrivals;
};

typedef void (*case_function)(struct transport_case *c);

struct contract_case {
	const char *name;
	case_function run;
	unsigned needs; /* CONTRACT_NO_* flags that make it impossible */
};

/* Each ends with { NULL }. */
extern const struct contract_case open_cases[];
extern const struct contract_case publish_cases[];
extern const struct contract_case outage_cases[];

/* A transport that works, not yet connected / connected. */
struct outbox_transport *case_open(struct transport_case *c, const char *url, int envelope);
struct outbox_transport *case_connect(struct transport_case *c);
int case_try_open(struct transport_case *c, const char *url, int envelope,
		  struct outbox_transport **ret_transport, struct outbox_error *err);
int connect_to(struct outbox_transport *transport, struct outbox_error *err);
outbox_time soon(void);

/* Add a message to the batch: a JSON payload with n in it, the id "<prefix>-n". */
struct outbox_message *case_message(struct transport_case *c, const char *prefix, size_t n);
void case_messages(struct transport_case *c, const char *prefix, size_t first, size_t count);
/* Empty the batch (the messages of before stay valid) or only forget its verdicts. */
void case_new_batch(struct transport_case *c);
void case_reset_verdicts(struct transport_case *c);

/* Publish the batch; it must return OK with a verdict for every item. */
void case_publish(struct transport_case *c, struct outbox_transport *transport);
void case_publish_acked(struct transport_case *c, struct outbox_transport *transport);

/* Read back. find returns the first arrival with that id, NULL when there is none. */
void case_read_back(struct transport_case *c);
const struct arrival *case_find(const struct transport_case *c, const char *id);
/* Every ACKED item of the batch arrived, byte for byte. */
void assert_acked_arrived(const struct transport_case *c);
/* Exactly the batch's items arrived, in its order. */
void assert_arrived_in_order(const struct transport_case *c);

#endif
