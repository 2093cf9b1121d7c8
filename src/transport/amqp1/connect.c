/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting: one address after the other, each with its share of the time that is left. TLS first, when the URL says so,
 * then SASL, open, begin; a token where Azure wants one; and the link of a target that has one address, so that a missing
 * queue is known before anything is sent.
 */

#include "transport/amqp1/driver.h"

#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <proton/connection.h>
#include <proton/logger.h>
#include <proton/sasl.h>
#include <proton/session.h>
#include <proton/transport.h>

#define MAX_FRAME \
	65536 /* what a broker may send us at once: nothing that it has to say is longer */

/* ---- the end of one ------------------------------------------------------------------------------------ */

void amqp1_drop(struct amqp1_transport *t, bool polite)
{
	if (t->driver.connection) {
		if (polite && !amqp1_ended(t) && wire_unsent(&t->wire) == 0) {
			pn_connection_close(t->driver.connection);
			amqp1_pump(t, 0);
		}
		links_free_all(t);
		request_end(t);
		pn_connection_driver_destroy(&t->driver);
		memset(&t->driver, 0, sizeof(t->driver));
	}
	t->session = NULL;
	t->closed = false;
	t->row = NULL;
	wire_close(&t->wire);
}

/* ---- the beginning ------------------------------------------------------------------------------------- */

/* What the library has to tell is in the conditions; an application's standard error is not ours. */
static void log_nothing(intptr_t context, pn_log_subsystem_t subsystem, pn_log_level_t severity,
			const char *message)
{
	(void)context;
	(void)subsystem;
	(void)severity;
	(void)message;
}

static void set_login(struct amqp1_transport *t)
{
	static const char *const mechanisms[] = {
		[AUTH_ANONYMOUS] = "ANONYMOUS",
		[AUTH_PLAIN] = "PLAIN",
		[AUTH_EXTERNAL] = "EXTERNAL",
		[AUTH_CBS] = "ANONYMOUS",
	};
	pn_sasl_t *sasl = pn_sasl(t->driver.transport);

	pn_sasl_allowed_mechs(sasl, mechanisms[t->auth]);
	/* TLS is ours, so the library sees none. A password without TLS is what amqp1:// says. */
	pn_sasl_set_allow_insecure_mechs(sasl, true);
	if (t->auth != AUTH_PLAIN)
		return;
	pn_connection_set_user(t->driver.connection, t->broker.endpoint.user);
	pn_connection_set_password(t->driver.connection, t->broker.endpoint.password);
}

static int start_driver(struct amqp1_transport *t, const char *host, struct outbox_error *err)
{
	pn_connection_t *connection;
	char container[400];

	if (pn_connection_driver_init(&t->driver, NULL, NULL) != 0)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	connection = t->driver.connection;
	pn_logger_set_log_sink(pn_transport_logger(t->driver.transport), log_nothing, 0);
	pn_transport_set_max_frame(t->driver.transport, MAX_FRAME);
	/* A name of its own for each: brokers take links of one name from one container for the same. */
	snprintf(container, sizeof(container), "%s %016llx", t->broker.client,
		 (unsigned long long)random_system_seed());
	pn_connection_set_container(connection, container);
	pn_connection_set_hostname(connection, t->hostname ? t->hostname : host);
	set_login(t);
	pn_connection_open(connection);
	t->session = pn_session(connection);
	pn_session_open(t->session);
	return OUTBOX_OK;
}

static bool is_begun(const struct amqp1_transport *t)
{
	return (pn_connection_state(t->driver.connection) & PN_REMOTE_ACTIVE) &&
	       (pn_session_state(t->session) & PN_REMOTE_ACTIVE) && !amqp1_ended(t);
}

/* None was chosen: the broker offers others. */
static int fail_login(const struct amqp1_transport *t, const struct outbox_error *why, int status,
		      struct outbox_error *err)
{
	bool chosen = t->driver.transport && pn_sasl_get_mech(pn_sasl(t->driver.transport));

	return outbox_fail_native(err, status, why->native, "%s%s", why->message,
				  status == OUTBOX_EAUTH && !chosen
					  ? "; the broker does not offer this way to log in (auth=)"
					  : "");
}

static int begin(struct amqp1_transport *t, const char *host, outbox_time deadline,
		 struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r = start_driver(t, host, &why);

	if (r == OUTBOX_OK)
		r = amqp1_await(t, is_begun, "logging in", deadline, &why);
	/* The password is gone. */
	if (t->wire.out.data)
		explicit_bzero(t->wire.out.data, t->wire.out.capacity);
	return r == OUTBOX_OK ? OUTBOX_OK : fail_login(t, &why, r, err);
}

static int use_address(void *context, const struct address *address, outbox_time until,
		       struct outbox_error *err)
{
	struct amqp1_transport *t = context;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r;

	amqp1_drop(t, false);
	r = wire_connect(&t->wire, "AMQP", address, until, &why);
	if (r != OUTBOX_OK && why.native == ECONNREFUSED)
		return outbox_fail_native(err, r, ECONNREFUSED,
					  "%s: nothing listens there: is the broker running, are host "
					  "and port right?",
					  t->wire.shown);
	if (r != OUTBOX_OK)
		return outbox_fail_native(err, r, why.native, "%s", why.message);
	if (t->broker.endpoint.tls)
		r = wire_start_tls(&t->wire, &t->broker.endpoint,
				   t->azure ? t->hostname : address->host, until, err);
	if (r == OUTBOX_OK)
		r = begin(t, address->host, until, err);
	if (r == OUTBOX_OK && t->constant)
		r = links_attach_only(t, until, err);
	return r;
}

int amqp1_connect(struct outbox_transport *transport, outbox_time deadline, struct outbox_error *err)
{
	struct amqp1_transport *t = amqp1_downcast(transport);
	int r = endpoint_try(&t->broker.endpoint, t->broker.clock, deadline, use_address, t, err);

	if (r != OUTBOX_OK)
		amqp1_drop(t, false);
	return r;
}
