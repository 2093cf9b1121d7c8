/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: on a file system that is really full: a small tmpfs in a mount namespace of this process.
 * Where neither root nor user namespaces are to be had, it is skipped (77) with the reason.
 */

#include "transport_file_place.h"
#include "transport_lines.h"

#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define SKIPPED 77
#define TMPFS "size=256k,mode=0700"

static bool put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* Become root of a namespace of our own, if we are not root anyway. */
static bool enter_namespace(void)
{
	char map[64];

	snprintf(map, sizeof(map), "0 %d 1", (int)geteuid());
	if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0)
		return true;
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       put_text("/proc/self/setgroups", "deny") && put_text("/proc/self/uid_map", map);
}

/* Fill what is left of the file system with zeros. */
static void fill(const char *path)
{
	static const char zeros[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static void full_tmpfs_is_an_outage(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	char filler[128];
	size_t batches = 0;
	int r;

	(void)state;
	file_case_begin(&c);
	snprintf(filler, sizeof(filler), "%s.filler", file_case_path(&c));
	transport = case_connect(&c);
	/* 50 lines a batch: the end of the space is somewhere inside one. */
	for (;;) {
		off_t length = lines_length(file_case_path(&c));

		case_new_batch(&c);
		case_messages(&c, "a", 50 * batches, 50);
		r = transport->ops->publish(transport, &c.batch, soon(), NULL);
		if (r) {
			assert_int_equal(lines_length(file_case_path(&c)), length);
			break;
		}
		batches++;
	}
	assert_int_equal(r, OUTBOX_EFULL);
	assert_true(batches > 0);
	for (size_t i = 0; i < c.batch.count; i++)
		assert_int_equal(c.batch.items[i]->verdict, OUTBOX_VERDICT_UNSET);
	transport->ops->disconnect(transport);

	/* No byte left: connecting works, publishing does not. Then somebody makes room. */
	fill(filler);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	assert_int_equal(transport->ops->publish(transport, &c.batch, soon(), NULL), OUTBOX_EFULL);
	transport->ops->disconnect(transport);
	assert_int_equal(unlink(filler), 0);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	c.batch.count = 1;
	case_publish_acked(&c, transport);
	transport_close(transport);
	case_read_back(&c);
	assert_int_equal(c.arrivals.count, 50 * batches + 1);
	file_case_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(full_tmpfs_is_an_outage) };

	if (!enter_namespace() || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, TMPFS) < 0) {
		printf("skipped: cannot mount a tmpfs: %s; run it as root or allow user "
		       "namespaces\n",
		       strerror(errno));
		return SKIPPED;
	}
	return cmocka_run_group_tests_name("transport_file_tmpfs", tests, NULL, NULL);
}
