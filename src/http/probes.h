/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_PROBES_H
#define HTTP_PROBES_H

/* What machines ask: is it alive, is it ready, is it well, and its numbers. All from memory. */

#include "http/http.h"

/* Every path with what it is for: nothing that the documentation does not say, so it needs no token. */
int probe_index(const struct http_request *request, struct http_response *response,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
int probe_health(const struct http_request *request, struct http_response *response,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
int probe_live(const struct http_request *request, struct http_response *response,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
int probe_ready(const struct http_request *request, struct http_response *response,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
int probe_metrics(const struct http_request *request, struct http_response *response,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
