/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer means, in one table; docs/transports/http.md shows the same. Three things are told apart: what is wrong
 * with this message, what is wrong with it now, and what is wrong with the target, which charges nobody.
 *
 * Where the target is out but the message may be the reason (a firewall that dislikes its content, an application that
 * dies of it), it is UNKNOWN: the engine then sends it alone after others, and finds it out.
 */

#include "transport/http/driver.h"

#include "base/text.h"

#include <stdlib.h>

const struct http_row http_rows[] = {
	{ 200, 299, OUTBOX_ACKED, OUTBOX_OK, "" },
	{ 300, 399, OUTBOX_REJECTED, OUTBOX_OK, "; redirects are not followed: give the last URL" },
	{ 401, 401, OUTBOX_VERDICT_UNSET, OUTBOX_EAUTH, "; correct user, token or signature" },
	{ 403, 403, OUTBOX_UNKNOWN, OUTBOX_EAUTH, "; correct user, token or signature" },
	{ 404, 405, OUTBOX_VERDICT_UNSET, OUTBOX_EAUTH, "; correct the URL" },
	{ 407, 407, OUTBOX_VERDICT_UNSET, OUTBOX_EAUTH, "; correct the proxy's user and password" },
	{ 408, 409, OUTBOX_RETRY, OUTBOX_OK, "" },
	{ 410, 410, OUTBOX_VERDICT_UNSET, OUTBOX_EGONE, "" },
	{ 423, 425, OUTBOX_RETRY, OUTBOX_OK, "" },
	{ 429, 429, OUTBOX_VERDICT_UNSET, OUTBOX_EFULL, "" },
	{ 400, 499, OUTBOX_REJECTED, OUTBOX_OK, "" },
	{ 502, 502, OUTBOX_UNKNOWN, OUTBOX_ECONN, "" },
	{ 503, 503, OUTBOX_UNKNOWN, OUTBOX_EFULL, "" },
	{ 504, 504, OUTBOX_UNKNOWN, OUTBOX_ECONN, "" },
	{ 500, 599, OUTBOX_RETRY, OUTBOX_OK, "" },
	{ 0, 999, OUTBOX_UNKNOWN, OUTBOX_ECONN, ", which is not a status of HTTP" },
};

const struct http_row *http_row_find(int status)
{
	const struct http_row *row = http_rows;

	while ((status < row->first || status > row->last) && row->last != 999)
		row++;
	return row;
}

int http_failure_status(CURLcode failure)
{
	switch (failure) {
	case CURLE_OPERATION_TIMEDOUT:
		return OUTBOX_ETIMEDOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_LOGIN_DENIED:
		return OUTBOX_EAUTH;
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return OUTBOX_ECONFIG;
	default: /* also CURLE_OUT_OF_MEMORY, which curl says of headers without an end */
		return OUTBOX_ECONN;
	}
}

#define RETRY_AFTER_MAX 1000000000

outbox_time http_retry_after(const char *value, struct outbox_clock *clock)
{
	int64_t seconds;
	time_t date;

	if (!value)
		return 0;
	if (number_parse("Retry-After", value, 0, RETRY_AFTER_MAX, &seconds, NULL) == OUTBOX_OK)
		return seconds * OUTBOX_SECONDS;
	date = curl_getdate(value, NULL);
	seconds = (int64_t)date - clock->wall(clock) / OUTBOX_SECONDS;
	if (date <= 0)
		return 0;
	return (seconds < RETRY_AFTER_MAX ? seconds : RETRY_AFTER_MAX) * OUTBOX_SECONDS;
}
