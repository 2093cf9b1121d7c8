/* SPDX-License-Identifier: Apache-2.0 */
#include "transport_proxied.h"

const char *proxied_url(void *state)
{
	return ((struct proxied *)state)->url;
}

const char *proxied_missing_url(void *state)
{
	return ((struct proxied *)state)->missing;
}

void proxied_outage(void *state, bool on)
{
	proxy_down(((struct proxied *)state)->proxy, on);
}

void proxied_outage_after(void *state, size_t n)
{
	struct proxied *p = state;

	/* In the middle of a message; the answers before the break come through, or are lost with it. */
	proxy_cut_after(p->proxy, n * p->message_bytes + 7, n % 2 || (p->window && n >= p->window));
}

bool proxied_touched(void *state)
{
	return proxy_touched(((struct proxied *)state)->proxy);
}
