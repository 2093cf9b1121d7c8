/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ROUTING_H
#define CORE_ROUTING_H

#include <outbox/store.h>

/* Does this message go to a target with this route? */
bool route_match(const struct outbox_route *route, const struct outbox_message *message);

/* The same in two steps, for stores that have to look for the headers: both must be true. */
bool route_match_fields(const struct outbox_route *route, const char *type, int kind, bool published);
bool route_match_headers(const struct outbox_route *route, const struct outbox_header *headers,
			 size_t n);

/* ECONFIG for an empty or over-long glob, a [ or ] in it, an unknown kind, or a header that is not NAME=GLOB. */
int route_check(const struct outbox_route *route, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A canonical text of the route: equal text, equal routing. {"types":["order.*"],"kind":"event","published":true}
 * and, where they are given, "headers":["tenant=acme"] and then "priority":["high"]. */
struct buf;
void route_format(const struct outbox_route *route, struct buf *out);
/* The reverse; strings from the arena. EPROTO when the text is not one of ours. */
int route_parse(const char *text, struct outbox_arena *arena, struct outbox_route *ret_route,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* [a-z][a-z0-9_-]{0,62} */
int target_name_check(const char *name, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
