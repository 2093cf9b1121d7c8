/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, connecting and letting go. */

#include "transport_case.h"

#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

static void ops_are_complete(struct transport_case *c)
{
	const struct outbox_transport_ops *ops = c->fixture->ops;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	bool listed = false;

	assert_int_equal(transport_ops_check(ops, &err), OUTBOX_OK);
	for (const struct outbox_transport_ops *const *i = transport_drivers; *i; i++)
		listed |= *i == ops;
	assert_int_equal(listed, !(c->fixture->flags & CONTRACT_NOT_BUILT_IN));
	assert_non_null(ops->help);
}

static void assert_refused(struct transport_case *c, const char *url, int envelope, const char *names)
{
	struct outbox_transport *const untouched = (struct outbox_transport *)c;
	struct outbox_transport *transport = untouched;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (case_try_open(c, url, envelope, &transport, &err) != OUTBOX_ECONFIG)
		fail_msg("\"%s\" was not refused as a mistake: %s", url, err.message);
	assert_ptr_equal(transport, untouched);
	assert_int_equal(err.status, OUTBOX_ECONFIG);
	if (!strstr(err.message, names))
		fail_msg("\"%s\": \"%s\" does not name \"%s\"", url, err.message, names);
	assert_null(strchr(err.message, '\n'));
	/* err may be NULL. */
	assert_int_equal(case_try_open(c, url, envelope, &transport, NULL), OUTBOX_ECONFIG);
}

static void bad_urls_are_refused(struct transport_case *c)
{
	for (const struct bad_url *bad = c->fixture->bad_urls; bad->url; bad++)
		assert_refused(c, bad->url, OUTBOX_ENVELOPE_UNSET, bad->names);
}

static void unknown_options_are_refused(struct transport_case *c)
{
	const char *url = c->fixture->url(c->place);
	char text[4096];

	snprintf(text, sizeof(text), "%s%cno_such_option=1", url, strpbrk(url, "?#") ? '&' : '?');
	assert_refused(c, text, OUTBOX_ENVELOPE_UNSET, "no_such_option");
}

static void unknown_envelope_is_refused(struct transport_case *c)
{
	assert_refused(c, c->fixture->url(c->place), 99, "envelope");
}

static void open_does_no_io(struct transport_case *c)
{
	struct outbox_transport *transport = case_open(c, c->fixture->url(c->place), 0);

	if (c->fixture->touched)
		assert_false(c->fixture->touched(c->place));
	transport_close(transport);
	if (c->fixture->touched)
		assert_false(c->fixture->touched(c->place));
}

static void open_works_during_an_outage(struct transport_case *c)
{
	struct outbox_transport *transport;

	c->fixture->outage(c->place, true);
	transport = case_open(c, c->fixture->url(c->place), 0);
	transport_close(transport);
	c->fixture->outage(c->place, false);
}

static void connect_to_a_missing_place_fails(struct transport_case *c)
{
	struct outbox_transport *transport = case_open(c, c->fixture->missing_url(c->place), 0);
	struct outbox_error err = OUTBOX_ERROR_INIT;

	assert_int_equal(connect_to(transport, &err), c->fixture->missing_status);
	assert_int_equal(err.status, c->fixture->missing_status);
	assert_true(err.message[0] != '\0');
	assert_null(strchr(err.message, '\n'));
	assert_int_equal(connect_to(transport, NULL), c->fixture->missing_status);
	transport_close(transport);
}

static void disconnect_is_always_legal(struct transport_case *c)
{
	struct outbox_transport *transport = case_open(c, c->fixture->url(c->place), 0);

	transport->ops->disconnect(transport);
	transport->ops->disconnect(transport);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	transport->ops->disconnect(transport);
	transport->ops->disconnect(transport);
	transport_close(transport);
}

static void close_is_always_legal(struct transport_case *c)
{
	struct outbox_transport *transport;

	assert_null(transport_close(NULL));
	transport_close(case_open(c, c->fixture->url(c->place), 0));
	transport_close(case_connect(c));
	transport = case_connect(c);
	transport->ops->disconnect(transport);
	assert_null(transport_close(transport));
}

static void connect_twice_is_a_new_connection(struct transport_case *c)
{
	struct outbox_transport *transport = case_connect(c);

	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_messages(c, "a", 0, 3);
	case_publish_acked(c, transport);
	transport_close(transport);
}

static void check_says_what_an_ack_means(struct transport_case *c)
{
	struct outbox_transport *transport = case_connect(c);
	char text[512], tiny[8];

	memset(text, 'x', sizeof(text));
	assert_in_range(transport_check(transport, soon(), text, sizeof(text)), 0, 3);
	assert_non_null(memchr(text, '\0', sizeof(text)));
	if (transport->ops->check)
		assert_true(text[0] != '\0');
	memset(tiny, 'x', sizeof(tiny));
	transport_check(transport, soon(), tiny, sizeof(tiny));
	assert_non_null(memchr(tiny, '\0', sizeof(tiny)));
	transport_close(transport);
}

const struct contract_case open_cases[] = {
	{ "ops_are_complete", ops_are_complete, 0 },
	{ "bad_urls_are_refused", bad_urls_are_refused, 0 },
	{ "unknown_options_are_refused", unknown_options_are_refused, 0 },
	{ "unknown_envelope_is_refused", unknown_envelope_is_refused, CONTRACT_NO_ENVELOPE },
	{ "open_does_no_io", open_does_no_io, 0 },
	{ "open_works_during_an_outage", open_works_during_an_outage, CONTRACT_NO_OUTAGE },
	{ "connect_to_a_missing_place_fails", connect_to_a_missing_place_fails, CONTRACT_NO_MISSING },
	{ "disconnect_is_always_legal", disconnect_is_always_legal, 0 },
	{ "close_is_always_legal", close_is_always_legal, 0 },
	{ "connect_twice_is_a_new_connection", connect_twice_is_a_new_connection, 0 },
	{ "check_says_what_an_ack_means", check_says_what_an_ack_means, 0 },
	{ NULL, NULL, 0 },
};
