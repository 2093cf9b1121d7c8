/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/aws/driver.h"

#include <stdlib.h>

extern const struct outbox_transport_ops sqs_transport_ops, sns_transport_ops;

static void aws_close(struct outbox_transport *transport)
{
	struct aws_transport *t = transport ? aws_downcast(transport) : NULL;

	if (!t)
		return;
	aws_disconnect(transport);
	aws_credentials_deinit(&t->credentials);
	key_order_deinit(&t->order);
	free(t->url);
	free(t->host);
	free(t->place);
	broker_close(&t->broker);
}

static int configure_sqs(struct broker *broker, struct url *url,
			 const struct outbox_transport_config *config, struct outbox_error *err)
{
	((struct aws_transport *)broker)->service = &aws_sqs;
	return aws_configure(broker, url, config, err);
}

static int open_sqs(const struct outbox_transport_config *config,
		    struct outbox_transport **ret_transport, struct outbox_error *err)
{
	static const struct broker_driver driver = {
		.ops = &sqs_transport_ops,
		.title = "SQS",
		.size = sizeof(struct aws_transport),
		.attribute_prefix = "ce-",
		.options = AWS_OPTIONS,
		.configure = configure_sqs,
	};

	return broker_open(&driver, config, ret_transport, err);
}

static int configure_sns(struct broker *broker, struct url *url,
			 const struct outbox_transport_config *config, struct outbox_error *err)
{
	((struct aws_transport *)broker)->service = &aws_sns;
	return aws_configure(broker, url, config, err);
}

static int open_sns(const struct outbox_transport_config *config,
		    struct outbox_transport **ret_transport, struct outbox_error *err)
{
	static const struct broker_driver driver = {
		.ops = &sns_transport_ops,
		.title = "SNS",
		.size = sizeof(struct aws_transport),
		.attribute_prefix = "ce-",
		.options = AWS_OPTIONS,
		.configure = configure_sns,
	};

	return broker_open(&driver, config, ret_transport, err);
}

/* the first of them has no TLS: for emulators */
static const char *const sqs_schemes[] = { "sqs+http", "sqs", NULL };
static const char *const sns_schemes[] = { "sns+http", "sns", NULL };

const struct outbox_transport_ops sqs_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "sqs",
	.schemes = sqs_schemes,
	.help = "sqs://[KEYID@]sqs.REGION.amazonaws.com/ACCOUNT/QUEUE?OPTION=VALUE&... (region, batch, in_flight, "
		"timeout, password_file, ca, cert, key, verify)",
	.flags = OUTBOX_TRANSPORT_KEEPS_ORDER,
	.open = open_sqs,
	.connect = aws_connect,
	.publish = aws_publish,
	.disconnect = aws_disconnect,
	.close = aws_close,
	.check = aws_check,
};

const struct outbox_transport_ops sns_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "sns",
	.schemes = sns_schemes,
	.help = "sns://[KEYID@]sns.REGION.amazonaws.com/ACCOUNT/TOPIC?OPTION=VALUE&... (region, batch, in_flight, "
		"timeout, password_file, ca, cert, key, verify)",
	.flags = OUTBOX_TRANSPORT_KEEPS_ORDER,
	.open = open_sns,
	.connect = aws_connect,
	.publish = aws_publish,
	.disconnect = aws_disconnect,
	.close = aws_close,
	.check = aws_check,
};
