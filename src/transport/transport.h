/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <outbox/transport.h>

/*
 * Built-in drivers, NULL-terminated; the build generates the lists. The program has the brokers' among them; in liboutbox
 * they are not, and a URL without a driver is answered with the remedy.
 */
extern const struct outbox_transport_ops *const transport_drivers[];
extern const char transport_drivers_remedy[];

/* The brokers' alone, what liboutbox-brokers registers. */
extern const struct outbox_transport_ops *const broker_drivers[];

/* EINVAL naming the first mandatory op that is missing. */
int transport_ops_check(const struct outbox_transport_ops *ops,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

/* NULL is legal and returns NULL. */
struct outbox_transport *transport_close(struct outbox_transport *transport);

/*
 * Making message i what goes on the wire ended with this status. EINVAL: it is REJECTED with that reason, and that is
 * all; what is no message's own failure is passed on. Inline, since drivers are in two libraries.
 */
static inline int transport_reject(struct outbox_batch *batch, size_t i, int status,
				   const struct outbox_error *why, struct outbox_error *err)
{
	if (status != OUTBOX_EINVAL)
		return outbox_fail(err, status, "%s", why->message);
	outbox_batch_verdict(batch, i, OUTBOX_REJECTED, 0, "%s", why->message);
	return OUTBOX_OK;
}

/* The driver's check(), or 0 with an empty text where it has none. */
int transport_check(struct outbox_transport *transport, outbox_time deadline, char *text,
		    size_t size);

#endif
