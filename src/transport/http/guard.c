/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of IPv6 only 2000::/3 is public at all, and of that everything that carries an IPv4 address (6to4, Teredo) is not:
 * somebody at the way there would unpack it. The ranges are those of IANA's registries of special-purpose addresses.
 */

#include "transport/http/guard.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct range {
	struct guard_network network;
	const char *name;
};

#define V4(a_, b_, c_, bits_, name_)                                              \
	{                                                                         \
		{ .bits = (bits_), .address = { (a_), (b_), (c_), 0 } }, (name_), \
	}
#define V6(bits_, name_, ...)                                                           \
	{                                                                               \
		{ .ipv6 = true, .bits = (bits_), .address = { __VA_ARGS__ } }, (name_), \
	}

static const struct range ranges[] = {
	V4(0, 0, 0, 8, "unspecified"),
	V4(10, 0, 0, 8, "private"),
	V4(100, 64, 0, 10, "shared with a carrier's network"),
	V4(127, 0, 0, 8, "loopback"),
	V4(169, 254, 0, 16, "link-local"),
	V4(172, 16, 0, 12, "private"),
	V4(192, 0, 0, 24, "reserved for protocols"),
	V4(192, 0, 2, 24, "for documentation"),
	V4(192, 88, 99, 24, "a 6to4 relay"),
	V4(192, 168, 0, 16, "private"),
	V4(198, 18, 0, 15, "for benchmarks"),
	V4(198, 51, 100, 24, "for documentation"),
	V4(203, 0, 113, 24, "for documentation"),
	V4(224, 0, 0, 4, "multicast"),
	V4(240, 0, 0, 4, "reserved"),
	V6(128, "unspecified", 0),
	V6(128, "loopback", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
	V6(96, "an IPv4 address in IPv6", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff),
	V6(96, "an IPv4 address in IPv6", 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff),
	V6(96, "an IPv4 address in IPv6", 0),
	V6(96, "NAT64", 0, 0x64, 0xff, 0x9b),
	V6(48, "NAT64", 0, 0x64, 0xff, 0x9b, 0, 1),
	V6(32, "Teredo", 0x20, 0x01),
	V6(23, "reserved for protocols", 0x20, 0x01),
	V6(32, "for documentation", 0x20, 0x01, 0x0d, 0xb8),
	V6(16, "6to4", 0x20, 0x02),
	V6(20, "for documentation", 0x3f, 0xff),
	V6(7, "private", 0xfc),
	V6(10, "link-local", 0xfe, 0x80),
	V6(10, "private", 0xfe, 0xc0),
	V6(8, "multicast", 0xff),
};

static const struct guard_network global_ipv6 = { .ipv6 = true, .bits = 3, .address = { 0x20 } };

static bool contains(const struct guard_network *network, const struct guard_network *one)
{
	unsigned bytes = network->bits / 8, rest = network->bits % 8;

	if (network->ipv6 != one->ipv6 || memcmp(network->address, one->address, bytes) != 0)
		return false;
	return !rest || !((network->address[bytes] ^ one->address[bytes]) >> (8 - rest));
}

/* False: of a kind that is neither. */
static bool read_address(const struct sockaddr *address, struct guard_network *ret_network)
{
	*ret_network = (struct guard_network){ .ipv6 = address->sa_family == AF_INET6 };
	/* copied: nobody promises how it is aligned */
	if (address->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, address, sizeof(in));
		memcpy(ret_network->address, &in.sin_addr, 4);
		ret_network->bits = 32;
	} else if (address->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, address, sizeof(in6));
		memcpy(ret_network->address, &in6.sin6_addr, 16);
		ret_network->bits = 128;
	}
	return ret_network->bits > 0;
}

const char *guard_range(const struct sockaddr *address)
{
	struct guard_network one;

	if (!read_address(address, &one))
		return "neither IPv4 nor IPv6";
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (contains(&ranges[i].network, &one))
			return ranges[i].name;
	return one.ipv6 && !contains(&global_ipv6, &one) ? "reserved" : NULL;
}

bool guard_admits(const struct guard *guard, const struct sockaddr *address)
{
	struct guard_network one;

	if (!guard_range(address))
		return true;
	if (!read_address(address, &one))
		return false;
	for (size_t i = 0; i < guard->n_allowed; i++)
		if (contains(&guard->allowed[i], &one))
			return true;
	return false;
}

static bool parse_network(char *text, struct guard_network *network)
{
	char *slash = strchr(text, '/');
	int64_t bits;

	if (slash)
		*slash = '\0';
	*network = (struct guard_network){ .ipv6 = strchr(text, ':') };
	network->bits = network->ipv6 ? 128 : 32;
	if (slash &&
	    number_parse("bits", slash + 1, 0, (int64_t)network->bits, &bits, NULL) != OUTBOX_OK)
		return false;
	if (slash)
		network->bits = (unsigned)bits;
	return inet_pton(network->ipv6 ? AF_INET6 : AF_INET, text, network->address) == 1;
}

int guard_allow(struct guard *guard, const char *list, struct outbox_error *err)
{
	_cleanup_(cleanup_free) char *copy = strdup(list);
	char *rest = copy, shown[80];

	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (char *one; (one = strsep(&rest, ","));) {
		text_shown(shown, sizeof(shown), one);
		if (guard->n_allowed == GUARD_NETWORKS_MAX)
			return outbox_fail(
				err, OUTBOX_ECONFIG,
				"option allow_private: more than %d networks; name larger ones",
				GUARD_NETWORKS_MAX);
		if (!parse_network(one, &guard->allowed[guard->n_allowed]))
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "option allow_private: \"%s\" is not a network; write an "
					   "address and its bits, such as 10.0.0.0/8 or fd00::/8",
					   shown);
		guard->n_allowed++;
	}
	return OUTBOX_OK;
}
