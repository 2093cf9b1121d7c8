/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http/guard.h"

#include "base/unit_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_storage address_of(const char *text)
{
	struct sockaddr_storage storage;
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	memset(&storage, 0, sizeof(storage));
	if (strchr(text, ':')) {
		assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
		memcpy(&storage, &in6, sizeof(in6));
	} else {
		assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
		memcpy(&storage, &in, sizeof(in));
	}
	return storage;
}

static bool admits(const struct guard *guard, const char *text)
{
	struct sockaddr_storage address = address_of(text);

	return guard_admits(guard, (struct sockaddr *)&address);
}

/* Both ends of every range, and their neighbours outside of it. */
static const char *const special[] = {
	"0.0.0.0",
	"0.255.255.255",
	"10.0.0.0",
	"10.255.255.255",
	"100.64.0.0",
	"100.127.255.255",
	"127.0.0.1",
	"127.255.255.255",
	"169.254.0.0",
	"169.254.169.254",
	"169.254.255.255",
	"172.16.0.0",
	"172.31.255.255",
	"192.0.0.1",
	"192.0.0.255",
	"192.0.2.1",
	"192.88.99.1",
	"192.168.0.0",
	"192.168.255.255",
	"198.18.0.0",
	"198.19.255.255",
	"198.51.100.7",
	"203.0.113.255",
	"224.0.0.1",
	"239.255.255.255",
	"240.0.0.1",
	"255.255.255.255",
	"::",
	"::1",
	"::2",
	"::127.0.0.1",
	"::8.8.8.8",
	"::ffff:127.0.0.1",
	"::ffff:7f00:1",
	"::ffff:8.8.8.8",
	"::ffff:0:127.0.0.1",
	"64:ff9b::7f00:1",
	"64:ff9b::808:808",
	"64:ff9b:1::1",
	"100::1",
	"2001::1",
	"2001:0:ffff::1",
	"2001:1ff::1",
	"2001:db8::1",
	"2002:7f00:1::",
	"2002:808:808::1",
	"3fff::1",
	"4000::1",
	"5f00::1",
	"1fff::1",
	"fc00::1",
	"fd12::1",
	"fe80::1",
	"febf::1",
	"fec0::1",
	"feff::1",
	"ff02::1",
	"ffff::1",
};
static const char *const open_ones[] = {
	"1.0.0.0",          "8.8.8.8",      "9.255.255.255",   "11.0.0.0",
	"100.63.255.255",   "100.128.0.0",  "126.255.255.255", "128.0.0.0",
	"169.253.255.255",  "169.255.0.0",  "172.15.255.255",  "172.32.0.0",
	"192.0.1.0",        "192.0.3.0",    "192.88.98.255",   "192.88.100.0",
	"192.167.255.255",  "192.169.0.0",  "198.17.255.255",  "198.20.0.0",
	"203.0.112.255",    "203.0.114.0",  "223.255.255.255", "2001:200::1",
	"2001:db7:ffff::1", "2001:db9::1",  "2003::1",         "2606:4700::1111",
	"2a00:1450::1",     "3ffe:ffff::1",
};

static void ranges_and_their_neighbours(void **state)
{
	const struct guard guard = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (admits(&guard, special[i]))
			fail_msg("%s is admitted", special[i]);
	for (size_t i = 0; i < sizeof(open_ones) / sizeof(open_ones[0]); i++)
		if (!admits(&guard, open_ones[i]))
			fail_msg("%s is refused", open_ones[i]);
}

static void networks_that_are_allowed(void **state)
{
	struct guard guard = { 0 };

	(void)state;
	assert_ok(guard_allow(&guard, "10.1.0.0/16,127.0.0.1,fd00::/9", err));
	assert_ok(guard_allow(&guard, "::ffff:10.0.0.0/104", err));
	assert_true(admits(&guard, "10.1.255.255"));
	assert_false(admits(&guard, "10.2.0.0"));
	assert_false(admits(&guard, "10.0.255.255"));
	assert_true(admits(&guard, "127.0.0.1"));
	assert_false(admits(&guard, "127.0.0.2"));
	assert_true(admits(&guard, "fd7f::1"));
	assert_false(admits(&guard, "fd80::1"));
	assert_false(admits(&guard, "::1"));
	/* another spelling of what is allowed is another address */
	assert_false(admits(&guard, "::ffff:127.0.0.1"));
	assert_true(admits(&guard, "::ffff:10.1.2.3"));
	guard = (struct guard){ 0 };
	assert_ok(guard_allow(&guard, "0.0.0.0/0", err));
	assert_true(admits(&guard, "127.0.0.1"));
	assert_false(admits(&guard, "::1"));
}

static void networks_that_are_none(void **state)
{
	static const char *const bad[] = { "",          "localhost",   "10.0.0.0/33",
					   "10.0.0.0/", "10.0.0/8",    "10.0.0.0/a",
					   "::1/129",   "10.0.0.0/8,", "10.0.0.0/-1" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct guard guard = { 0 };

		assert_fails(guard_allow(&guard, bad[i], err), OUTBOX_ECONFIG, "allow_private");
	}
}

static void other_kinds_of_addresses(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "/run/docker.sock" };
	struct guard guard = { 0 };

	(void)state;
	assert_ok(guard_allow(&guard, "0.0.0.0/0,::/0", err));
	assert_false(guard_admits(&guard, (struct sockaddr *)&un));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_and_their_neighbours),
		cmocka_unit_test(networks_that_are_allowed),
		cmocka_unit_test(networks_that_are_none),
		cmocka_unit_test(other_kinds_of_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
