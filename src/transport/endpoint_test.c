/* SPDX-License-Identifier: Apache-2.0 */
/* What the URLs of brokers share: templates, addresses, logins, TLS. */

#include "base/unit_test.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "transport/endpoint.h"
#include "transport/socket.h"
#include "transport/template.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct outbox_message message = {
	.type = "order.placed", .key = "42", .id = "i", .kind = OUTBOX_KIND_COMMAND
};

static void render(const char *text, const char *want)
{
	_cleanup_(template_deinit) struct template t = { 0 };
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(100);

	assert_ok(template_parse("routing_key", text, &t, err));
	assert_ok(template_render(&t, &message, &out, err));
	assert_string_equal(buf_str(&out), want);
}

static void templates_take_fields(void **state)
{
	(void)state;
	render("shop.{type}", "shop.order.placed");
	render("{kind}/{key}/{id}", "command/42/i");
	render("plain", "plain");
	render("{{{key}}}", "{42}");
	render("{type|kebab}-{kind|kebab}", "order-placed-command");
	render("", "");
}

static void templates_write_kebab_case(void **state)
{
	static const char *const cases[][2] = {
		{ "OrderPlaced", "order-placed" },
		{ "orderPlaced", "order-placed" },
		{ "order.placed", "order-placed" },
		{ "order_placed", "order-placed" },
		{ "order-placed", "order-placed" },
		{ "ORDER_PLACED", "order-placed" },
		{ "Order Placed", "order-placed" },
		{ "com.shop/Orders::OrderPlacedV2", "com-shop-orders-order-placed-v2" },
		{ "HTTPServerStarted", "http-server-started" },
		{ "..order..placed..", "order-placed" },
		{ "Bestellung\xc3\x84ndern", "bestellung\xc3\x84ndern" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(template_deinit) struct template t = { 0 };
		_cleanup_(buf_deinit) struct buf out = BUF_INIT(100);
		struct outbox_message m = { .type = cases[i][0] };

		assert_ok(template_parse("address", "{type|kebab}", &t, err));
		assert_false(template_is_constant(&t));
		assert_ok(template_render(&t, &m, &out, err));
		assert_string_equal(buf_str(&out), cases[i][1]);
	}
}

static void templates_refuse_what_they_do_not_know(void **state)
{
	struct template t;

	(void)state;
	assert_fails(template_parse("subject", "a.{typ}", &t, err), OUTBOX_ECONFIG,
		     "there is no {typ}");
	assert_fails(template_parse("subject", "a.{type|snake}", &t, err), OUTBOX_ECONFIG,
		     "filter in {type|snake}; there are: kebab");
	assert_fails(template_parse("subject", "a.{typ|kebab}", &t, err), OUTBOX_ECONFIG,
		     "{typ|kebab}; there are: {type}");
	assert_fails(template_parse("subject", "a.{type", &t, err), OUTBOX_ECONFIG,
		     "\"{\" stands alone");
	assert_fails(template_parse("subject", "a}b", &t, err), OUTBOX_ECONFIG, "\"}\" stands alone");
	assert_fails(template_parse("subject", "{}", &t, err), OUTBOX_ECONFIG, "option subject");
}

static void a_message_without_the_field_is_refused(void **state)
{
	_cleanup_(template_deinit) struct template t = { 0 };
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(10);

	(void)state;
	assert_ok(template_parse("subject", "{topic}", &t, err));
	assert_false(template_is_constant(&t));
	assert_fails(template_render(&t, &message, &out, err), OUTBOX_EINVAL, "has no topic");
	template_deinit(&t);
	assert_ok(template_parse("subject", "{type}", &t, err));
	assert_fails(template_render(&t, &message, &out, err), OUTBOX_EINVAL, "too long");
}

static int parse(const char *text, bool tls, struct endpoint *endpoint, struct outbox_error *err)
{
	struct url url = { 0 };
	int r = url_parse(text, &url, err);

	if (r == OUTBOX_OK)
		r = endpoint_parse(&url, 5672, tls, endpoint, err);
	if (r == OUTBOX_OK)
		r = url_finish(&url, ENDPOINT_OPTIONS, err);
	url_deinit(&url);
	return r;
}

static void addresses(void **state)
{
	_cleanup_(endpoint_deinit) struct endpoint e = { 0 };

	(void)state;
	assert_ok(parse("amqp://relay:pw@one,two:99,[::1]:7/", false, &e, err));
	assert_int_equal(e.n_addresses, 3);
	assert_string_equal(e.addresses[0].host, "one");
	assert_int_equal(e.addresses[0].port, 5672);
	assert_int_equal(e.addresses[1].port, 99);
	assert_string_equal(e.addresses[2].host, "::1");
	assert_int_equal(e.addresses[2].port, 7);
	assert_string_equal(e.shown, "one:5672,two:99,[::1]:7");
	assert_string_equal(e.user, "relay");
	assert_string_equal(e.password, "pw");
}

static void bad_addresses(void **state)
{
	struct endpoint e;

	(void)state;
	assert_fails(parse("amqp://host:0/", false, &e, err), OUTBOX_ECONFIG, "the port");
	assert_fails(parse("amqp://host:99999/", false, &e, err), OUTBOX_ECONFIG, "the port");
	assert_fails(parse("amqp://one,,two/", false, &e, err), OUTBOX_ECONFIG, "not a host");
	assert_fails(parse("amqp://[::1/", false, &e, err), OUTBOX_ECONFIG, "not a host");
	assert_fails(parse("amqp:///", false, &e, err), OUTBOX_ECONFIG, "needs a host");
}

static void secrets_and_certificates(void **state)
{
	_cleanup_(endpoint_deinit) struct endpoint e = { 0 };
	char path[] = "/tmp/outbox-secret-XXXXXX", url[200];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0 && write(fd, "s3cret\n", 7) == 7);
	snprintf(url, sizeof(url), "amqps://u@h/?password_file=%s&ca=%s", path, path);
	assert_ok(parse(url, true, &e, err));
	assert_string_equal(e.password, "s3cret");
	assert_string_equal(e.ca, path);
	assert_true(e.verify);
	endpoint_deinit(&e);
	assert_fails(parse(url, false, &e, err), OUTBOX_ECONFIG, "option ca is for TLS");
	snprintf(url, sizeof(url), "amqps://u:p@h/?password_file=%s", path);
	assert_fails(parse(url, true, &e, err), OUTBOX_ECONFIG, "one of the two");
	snprintf(url, sizeof(url), "amqps://u:p@h/?cert=%s", path);
	assert_fails(parse(url, true, &e, err), OUTBOX_ECONFIG, "cert and key belong together");
	assert_int_equal(ftruncate(fd, 0), 0);
	snprintf(url, sizeof(url), "amqps://u@h/?password_file=%s", path);
	assert_fails(parse(url, true, &e, err), OUTBOX_ECONFIG, "is empty");
	close(fd);
	unlink(path);
	assert_fails(parse(url, true, &e, err), OUTBOX_ECONFIG, "cannot be read");
	assert_fails(parse("amqps://h/?verify=maybe", true, &e, err), OUTBOX_ECONFIG,
		     "use yes or no");
	assert_ok(parse("amqps://h/?verify=no", true, &e, err));
	assert_false(e.verify);
	assert_string_equal(e.ca, ENDPOINT_CA_BUNDLE);
}

/* ---- one address after the other ------------------------------------------------------------------ */

struct tries {
	const int *statuses;
	size_t n;
	outbox_time now, until[4];
};

static struct tries tries;

static outbox_time now_of(struct outbox_clock *clock)
{
	(void)clock;
	return tries.now;
}

/* Takes all its time, and ends as it was told. */
static int attempt(void *context, const struct address *address, outbox_time until,
		   struct outbox_error *err)
{
	struct tries *t = context;
	size_t i = t->n++;

	t->until[i] = until;
	t->now = until;
	return t->statuses[i]
		       ? outbox_fail_native(err, t->statuses[i], (int)i, "%s failed", address->host)
		       : OUTBOX_OK;
}

static void the_failure_that_is_for_people_is_told(void **state)
{
	static const struct {
		int statuses[3], told;
		const char *words;
	} rows[] = {
		{ { OUTBOX_ECONN, OUTBOX_ETIMEDOUT, OUTBOX_ECONN }, OUTBOX_ECONN, "c failed" },
		{ { OUTBOX_EAUTH, OUTBOX_ETIMEDOUT, OUTBOX_ECONN }, OUTBOX_EAUTH, "a failed" },
		{ { OUTBOX_ECONN, OUTBOX_ECONFIG, OUTBOX_ECONN }, OUTBOX_ECONFIG, "b failed" },
		{ { OUTBOX_ECONN, OUTBOX_ECONN, OUTBOX_EAUTH }, OUTBOX_EAUTH, "c failed" },
		{ { OUTBOX_EAUTH, OUTBOX_ECONN, OUTBOX_OK }, OUTBOX_OK, "" },
	};
	_cleanup_(endpoint_deinit) struct endpoint e = { 0 };
	struct outbox_clock clock = { .mono = now_of };

	(void)state;
	assert_ok(parse("amqp://a,b,c/", false, &e, err));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct outbox_error told = OUTBOX_ERROR_INIT;

		tries = (struct tries){ .statuses = rows[i].statuses };
		assert_int_equal(endpoint_try(&e, &clock, 300, attempt, &tries, &told), rows[i].told);
		assert_string_equal(told.message, rows[i].words);
		assert_int_equal(tries.n, 3);
	}
	assert_int_equal(tries.until[0], 100);
	assert_int_equal(tries.until[1], 200);
	assert_int_equal(tries.until[2], 300);
	assert_fails(endpoint_try(&e, &clock, 300, attempt, &tries, err), OUTBOX_ETIMEDOUT,
		     "no time left");
}

/* ---- sockets ---------------------------------------------------------------------------------------- */

static struct sockaddr_in places[2];
static struct addrinfo found[2];

/* Instead of the system's: a host with two addresses. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **ret_list)
{
	(void)host, (void)port, (void)hints;
	for (size_t i = 0; i < 2; i++)
		found[i] = (struct addrinfo){ .ai_family = AF_INET,
					      .ai_addr = (struct sockaddr *)&places[i],
					      .ai_addrlen = sizeof(places[i]),
					      .ai_next = i ? NULL : &found[1] };
	*ret_list = found;
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	(void)list;
}

/* A port that nobody listens on until listen() is called. */
static int reserve_place(struct sockaddr_in *place)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(*place);

	*place = (struct sockaddr_in){ .sin_family = AF_INET };
	place->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)place, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)place, &size), 0);
	return fd;
}

static void an_address_that_another_makes_up_for_is_no_error(void **state)
{
	struct outbox_clock *clock = outbox_clock_system();
	struct address address = { .host = "two", .port = 1 };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int closed = reserve_place(&places[0]), open = reserve_place(&places[1]), fd = -1;

	(void)state;
	assert_int_equal(socket_connect(&address, "it", clock,
					clock->mono(clock) + 10 * OUTBOX_SECONDS, &fd, &err),
			 OUTBOX_ECONN);
	assert_non_null(strstr(err.message, "Connection refused"));
	err = (struct outbox_error)OUTBOX_ERROR_INIT;
	assert_int_equal(listen(open, 1), 0);
	assert_int_equal(socket_connect(&address, "it", clock,
					clock->mono(clock) + 10 * OUTBOX_SECONDS, &fd, &err),
			 OUTBOX_OK);
	assert_int_equal(err.status, OUTBOX_OK);
	assert_string_equal(err.message, "");
	close(fd);
	close(open);
	close(closed);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(templates_take_fields),
		cmocka_unit_test(templates_write_kebab_case),
		cmocka_unit_test(templates_refuse_what_they_do_not_know),
		cmocka_unit_test(a_message_without_the_field_is_refused),
		cmocka_unit_test(addresses),
		cmocka_unit_test(bad_addresses),
		cmocka_unit_test(secrets_and_certificates),
		cmocka_unit_test(the_failure_that_is_for_people_is_told),
		cmocka_unit_test(an_address_that_another_makes_up_for_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
