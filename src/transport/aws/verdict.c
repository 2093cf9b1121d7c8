/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a code means, in one table; docs/transports/aws.md shows the same. A code stands for a whole request, or for one of
 * its messages. EAUTH and EFULL promise that what has no verdict was not accepted, and a refusal is one; InternalError is
 * none: the service may have stored it.
 */

#include "transport/aws/driver.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "core/secrets.h"

#include <stdio.h>
#include <string.h>

#define PLACE OUTBOX_VERDICT_UNSET, OUTBOX_EAUTH
#define BUSY OUTBOX_VERDICT_UNSET, OUTBOX_EFULL, ""
#define NEVER OUTBOX_REJECTED, OUTBOX_OK, ""
#define AGAIN OUTBOX_RETRY, OUTBOX_ECONN, ""

#define KEY "check the access key"
#define RIGHTS "allow it in the policy"
#define KMS "look at the key that encrypts it"
#define CLOCK "set this machine's clock"

const struct aws_row aws_rows[] = {
	/* ---- the place, and what we may do there */
	{ "QueueDoesNotExist", PLACE, "create it, or correct the target's URL" },
	{ "NonExistentQueue", PLACE, "create it, or correct the target's URL" },
	{ "NotFound", PLACE, "create it, or correct the target's URL" },
	{ "InvalidAddress", PLACE, "correct the target's URL" },
	{ "AccessDenied", PLACE, RIGHTS },
	{ "AuthorizationError", PLACE, RIGHTS },
	{ "InvalidClientTokenId", PLACE, KEY },
	{ "InvalidAccessKeyId", PLACE, KEY },
	{ "UnrecognizedClient", PLACE, KEY },
	{ "InvalidSecurity", PLACE, KEY },
	{ "MissingAuthenticationToken", PLACE, KEY },
	{ "IncompleteSignature", PLACE, KEY },
	{ "OptInRequired", PLACE, KEY },
	{ "SignatureDoesNotMatch", PLACE, "check the secret, the region and this machine's clock" },
	{ "InvalidSignature", PLACE, "check the secret, the region and this machine's clock" },
	{ "ExpiredToken", PLACE, "give newer credentials" },
	{ "RequestExpired", PLACE, CLOCK },
	{ "RequestTimeTooSkewed", PLACE, CLOCK },
	/* ---- not now */
	{ "RequestThrottled", BUSY },
	{ "Throttl*", BUSY },
	{ "TooManyRequests", BUSY },
	{ "RequestLimitExceeded", BUSY },
	{ "OverLimit", BUSY },
	{ "SlowDown", BUSY },
	{ "KmsThrottled", BUSY },
	{ "KMSThrottling", BUSY },
	/* ---- the key of an encrypted place */
	{ "Kms*", PLACE, KMS },
	{ "KMS*", PLACE, KMS },
	/* ---- the message */
	{ "InvalidMessageContents", NEVER },
	{ "BatchRequestTooLong", NEVER },
	{ "InvalidParameter*", NEVER },
	{ "ParameterValueInvalid", NEVER },
	{ "InvalidAttributeValue", NEVER },
	{ "MissingParameter", NEVER },
	{ "InvalidBatchEntryId", NEVER },
	{ "Validation*", NEVER },
	{ "Serialization", NEVER },
	{ "UnsupportedOperation", NEVER },
	/* ---- the service */
	{ "InternalError", AGAIN },
	{ "InternalFailure", AGAIN },
	{ "InternalServerError", AGAIN },
	{ "ServiceUnavailable", AGAIN },
	{ "RequestTimeout", AGAIN },
	/* ---- no code, or one that nobody knows */
	{ "http 3*", PLACE, "redirects are not followed: correct the target's host" },
	{ "http 401", PLACE, KEY },
	{ "http 403", PLACE, RIGHTS },
	{ "http 404", PLACE, "correct the target's URL" },
	{ "http 407", PLACE, "a proxy is in the way" },
	{ "http 413", NEVER },
	{ "http 429", BUSY },
	{ "http 4*", OUTBOX_RETRY, OUTBOX_OK, "" },
	{ "*", AGAIN },
};

/* "com.amazonaws.sqs#QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "KMS.AccessDeniedException" */
static void strip(const char *code, char *out, size_t size)
{
	static const char *const fronts[] = { "AWS.SimpleQueueService.", "AWS.SNS." };
	static const char end[] = "Exception";
	const char *hash = strrchr(code, '#');
	size_t length;

	code = hash ? hash + 1 : code;
	for (size_t i = 0; i < ARRAY_SIZE(fronts); i++)
		if (strncmp(code, fronts[i], strlen(fronts[i])) == 0)
			code += strlen(fronts[i]);
	snprintf(out, size, "%s", code);
	length = strlen(out);
	if (length > sizeof(end) - 1 && strcmp(out + length - (sizeof(end) - 1), end) == 0)
		out[length - (sizeof(end) - 1)] = '\0';
}

static const struct aws_row *match(const char *name)
{
	const struct aws_row *row = aws_rows;

	while (!glob_match(row->code, name))
		row++;
	return row;
}

const struct aws_row *aws_row_find(const char *code, int status)
{
	char name[AWS_CODE_MAX];
	const struct aws_row *row;

	strip(code, name, sizeof(name));
	row = match(name);
	if (strcmp(row->code, "*") != 0)
		return row;
	snprintf(name, sizeof(name), "http %d", status);
	return match(name);
}

void aws_text_keep(char *out, size_t size, const char *text)
{
	_cleanup_(buf_deinit) struct buf hidden = BUF_INIT(4 * WEB_READ_MAX);

	hide_secrets(text, &hidden);
	snprintf(out, size, "%s", hidden.failed ? "(out of memory)" : buf_str(&hidden));
}

int aws_failure_status(CURLcode failure)
{
	switch (failure) {
	case CURLE_OPERATION_TIMEDOUT:
		return OUTBOX_ETIMEDOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
		return OUTBOX_EAUTH;
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return OUTBOX_ECONFIG;
	default:
		return OUTBOX_ECONN;
	}
}
