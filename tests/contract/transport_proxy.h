/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_PROXY_H
#define TRANSPORT_PROXY_H

/* A TCP proxy before a real broker: the broker lives on while its clients are cut off. One thread, loopback only. */

#include <stdbool.h>
#include <stddef.h>

struct proxy;

/* Listens on a free port. Fails the test when it cannot. */
struct proxy *proxy_start(int upstream_port);
/* The same on a port of one's own choice: for brokers that tell their clients where to come. */
struct proxy *proxy_start_at(int port, int upstream_port);
int proxy_port(const struct proxy *proxy);
void proxy_stop(struct proxy *proxy);

/* Down: open connections are reset and new ones refused. */
void proxy_down(struct proxy *proxy, bool down);

/*
 * Go down after so many more bytes from clients to the broker. answers: whether what the broker said up to then
 * still comes through; else nothing comes back from now on, as when a network loses the answers.
 */
void proxy_cut_after(struct proxy *proxy, size_t bytes, bool answers);

/* Pass nothing on, in both directions, and keep the connections: a network that went silent. */
void proxy_stall(struct proxy *proxy, bool stalled);

/* Did anybody connect? */
bool proxy_touched(struct proxy *proxy);

/* Bytes from clients to the broker so far. */
size_t proxy_sent(struct proxy *proxy);

#endif
