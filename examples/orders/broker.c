/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The application's own transport, "demo:PATH": the broker is a file to which messages are appended,
 * one CloudEvents JSON object per line. It can be made to fail: while PATH.down exists it is
 * unreachable, and it refuses any message that contains "total": -1.
 *
 * It shows what a driver has to do and what it leaves to the engine: connect within the deadline,
 * give each message a verdict, never say ACKED before the bytes are safe, never retry.
 */

#include "orders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct broker {
	struct outbox_transport base;
	struct outbox_encoder *encoder;
	int fd;
	char path[600];
	char down[640];
};

static void broker_disconnect(struct outbox_transport *transport)
{
	struct broker *broker = (struct broker *)transport;

	if (broker->fd >= 0)
		close(broker->fd);
	broker->fd = -1;
}

static void broker_close(struct outbox_transport *transport)
{
	struct broker *broker = (struct broker *)transport;

	if (!broker)
		return;
	broker_disconnect(transport);
	outbox_encoder_free(broker->encoder);
	free(broker);
}

static int broker_open(const struct outbox_transport_config *config,
		       struct outbox_transport **ret_transport, struct outbox_error *err)
{
	const char *path = strchr(config->url, ':') + 1;
	struct broker *broker;
	int status;

	if (!*path || strchr(path, '?'))
		return outbox_fail(err, OUTBOX_ECONFIG, "%s: write demo:PATH, without options",
				   config->url);
	broker = calloc(1, sizeof(*broker));
	if (!broker)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	broker->base.ops = &broker_ops;
	broker->fd = -1;
	snprintf(broker->path, sizeof(broker->path), "%s", path);
	snprintf(broker->down, sizeof(broker->down), "%s.down", path);
	status = outbox_encoder_new(config->envelope ? config->envelope
						     : OUTBOX_ENVELOPE_CE_STRUCTURED,
				    NULL, &broker->encoder, err);
	if (status != OUTBOX_OK) {
		broker_close(&broker->base);
		return status;
	}
	*ret_transport = &broker->base;
	return OUTBOX_OK;
}

static bool is_down(const struct broker *broker)
{
	return access(broker->down, F_OK) == 0;
}

/* A line that was cut by a crash was never acknowledged: remove it before appending. */
static int drop_torn_line(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);
	off_t size = end;
	char last = '\n';

	while (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n')
		size--;
	return size == end ? 0 : ftruncate(fd, size);
}

static int broker_connect(struct outbox_transport *transport, outbox_time deadline,
			  struct outbox_error *err)
{
	struct broker *broker = (struct broker *)transport;

	(void)deadline; /* nothing here waits */
	if (is_down(broker))
		return outbox_fail(err, OUTBOX_ECONN, "the broker refuses connections");
	broker->fd = open(broker->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (broker->fd < 0 || drop_torn_line(broker->fd) < 0)
		return outbox_fail_native(err, OUTBOX_ECONN, errno, "%s: %s", broker->path,
					  strerror(errno));
	return OUTBOX_OK;
}

/* Append one message. Its verdict is set here unless it is to be ACKED after the fsync. */
static int send_one(struct broker *broker, struct outbox_batch *batch, size_t i,
		    struct outbox_error *err)
{
	struct outbox_encoded encoded;
	struct outbox_error why;
	struct iovec line[2];
	size_t size;

	if (outbox_encode(broker->encoder, batch->items[i], &encoded, &why) != OUTBOX_OK) {
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, 0, "%s", why.message);
		return OUTBOX_OK;
	}
	if (memmem(encoded.body, encoded.size, "\"total\":-1", 10)) {
		outbox_batch_verdict(batch, i, OUTBOX_RETRY, 0, "handler refused \"total\": -1");
		return OUTBOX_OK;
	}
	wait_ms(4); /* as long as a broker on the network takes */
	line[0] = (struct iovec){ (void *)(uintptr_t)encoded.body, encoded.size };
	line[1] = (struct iovec){ (void *)(uintptr_t) "\n", 1 };
	size = encoded.size + 1;
	if (writev(broker->fd, line, 2) != (ssize_t)size)
		return outbox_fail_native(err, OUTBOX_ECONN, errno, "%s: %s", broker->path,
					  strerror(errno));
	return OUTBOX_OK;
}

static int broker_publish(struct outbox_transport *transport, struct outbox_batch *batch,
			  outbox_time deadline, struct outbox_error *err)
{
	struct broker *broker = (struct broker *)transport;

	(void)deadline; /* a batch of ten takes 40 ms */
	for (size_t i = 0; i < batch->count; i++) {
		int status;

		if (is_down(broker))
			return outbox_fail(err, OUTBOX_ECONN, "the broker closed the connection");
		status = send_one(broker, batch, i, err);
		if (status != OUTBOX_OK)
			return status;
	}
	if (fdatasync(broker->fd) < 0)
		return outbox_fail_native(err, OUTBOX_ECONN, errno, "%s: %s", broker->path,
					  strerror(errno));
	for (size_t i = 0; i < batch->count; i++)
		if (batch->items[i]->verdict == OUTBOX_VERDICT_UNSET)
			outbox_batch_verdict(batch, i, OUTBOX_ACKED, 0, NULL);
	return OUTBOX_OK;
}

static const char *const schemes[] = { "demo", NULL };

const struct outbox_transport_ops broker_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "demo broker",
	.schemes = schemes,
	.help = "demo:PATH, a file that can be made to fail",
	.open = broker_open,
	.connect = broker_connect,
	.publish = broker_publish,
	.disconnect = broker_disconnect,
	.close = broker_close,
};
