/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl can sign by itself (CURLOPT_AWS_SIGV4), but 7.88 also signs the header that only tells it to send none
 * ("Expect:"), so the signature is wrong; and it takes the time from a clock of its own.
 */

#include "transport/aws/sigv4.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/hmac.h>
#include <openssl/sha.h>

#define TEXT_MAX ((size_t)64 << 10)
#define DIGEST SHA256_DIGEST_LENGTH

const char *sigv4_time(outbox_time wall, char out[SIGV4_TIME_MAX])
{
	time_t seconds = (time_t)(wall / OUTBOX_SECONDS);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(out, SIGV4_TIME_MAX, "%Y%m%dT%H%M%SZ", &tm);
	return out;
}

static void put_hex(struct buf *out, const unsigned char digest[DIGEST])
{
	for (size_t i = 0; i < DIGEST; i++)
		buf_printf(out, "%02x", digest[i]);
}

static void put_hash(struct buf *out, const void *data, size_t size)
{
	unsigned char digest[DIGEST];

	SHA256(data, size, digest);
	put_hex(out, digest);
}

static void put_names(struct buf *out, const struct sigv4_request *request)
{
	for (size_t i = 0; i < request->n_headers; i++)
		buf_printf(out, "%s%s", i ? ";" : "", request->headers[i].name);
}

/* "20150830/us-east-1/sqs/aws4_request" */
static void put_scope(struct buf *out, const struct sigv4_request *request)
{
	buf_printf(out, "%.8s/%s/%s/aws4_request", request->time, request->region, request->service);
}

static void put_canonical(struct buf *out, const struct sigv4_request *request)
{
	buf_text(out, "POST\n/\n\n");
	for (size_t i = 0; i < request->n_headers; i++)
		buf_printf(out, "%s:%s\n", request->headers[i].name, request->headers[i].value);
	buf_char(out, '\n');
	put_names(out, request);
	buf_char(out, '\n');
	put_hash(out, request->body, request->size);
}

static bool put_hmac(unsigned char key[DIGEST], const char *text, size_t size)
{
	unsigned char in[DIGEST];

	memcpy(in, key, DIGEST);
	return HMAC(EVP_sha256(), in, DIGEST, (const unsigned char *)text, size, key, NULL);
}

/* The key of this day, region and service, in digest; then of the text. */
static bool make_signature(const struct sigv4_request *request, const struct buf *text,
			   unsigned char digest[DIGEST])
{
	char secret[300];
	int n = snprintf(secret, sizeof(secret), "AWS4%s", request->secret);
	bool made;

	if (n >= (int)sizeof(secret))
		return false;
	made = HMAC(EVP_sha256(), secret, n, (const unsigned char *)request->time, 8, digest, NULL) &&
	       put_hmac(digest, request->region, strlen(request->region)) &&
	       put_hmac(digest, request->service, strlen(request->service)) &&
	       put_hmac(digest, "aws4_request", strlen("aws4_request")) &&
	       put_hmac(digest, buf_str(text), text->size);
	explicit_bzero(secret, sizeof(secret));
	return made;
}

int sigv4_sign(const struct sigv4_request *request, struct buf *out, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf canonical = BUF_INIT(TEXT_MAX), text = BUF_INIT(TEXT_MAX);
	unsigned char digest[DIGEST];

	put_canonical(&canonical, request);
	buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n", request->time);
	put_scope(&text, request);
	buf_char(&text, '\n');
	put_hash(&text, buf_str(&canonical), canonical.size);
	if (canonical.failed || text.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!make_signature(request, &text, digest))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "the secret access key is too long; correct it");
	buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/", request->id);
	put_scope(out, request);
	buf_text(out, ", SignedHeaders=");
	put_names(out, request);
	buf_text(out, ", Signature=");
	put_hex(out, digest);
	return out->failed ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory") : OUTBOX_OK;
}
