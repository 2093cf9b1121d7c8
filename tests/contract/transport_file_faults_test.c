/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file: when the system calls fail. Linked with --wrap for write, fdatasync, fsync and ftruncate, so
 * that each can be told to fail or to do less than it was asked.
 */

#include "transport_file_place.h"
#include "transport_lines.h"

#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
	int sync_errno;     /* the next fdatasync fails with it */
	int syncs, sync_fd; /* calls since the last reset, the last one's descriptor */
	int folder_errno;   /* the next fsync fails with it */
	int folder_syncs;
	int cut_errno;    /* the next ftruncate fails with it */
	size_t write_max; /* no write takes more; 0: no limit */
	int interrupt;    /* every n-th write is interrupted; 0: none */
	int writes;
	int write_errno; /* writes fail with it once write_left is used up */
	size_t write_left;
} faults;

int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_ftruncate64(int fd, off_t length);
ssize_t __real_write(int fd, const void *data, size_t size);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_ftruncate(int fd, off_t length);
int __wrap_ftruncate64(int fd, off_t length);
ssize_t __wrap_write(int fd, const void *data, size_t size);

static int fail_once(int *number)
{
	errno = *number;
	*number = 0;
	return -1;
}

int __wrap_fdatasync(int fd)
{
	faults.syncs++;
	faults.sync_fd = fd;
	return faults.sync_errno ? fail_once(&faults.sync_errno) : __real_fdatasync(fd);
}

int __wrap_fsync(int fd)
{
	faults.folder_syncs++;
	return faults.folder_errno ? fail_once(&faults.folder_errno) : __real_fsync(fd);
}

/* Which of the two the driver calls is up to _FILE_OFFSET_BITS. */
int __wrap_ftruncate64(int fd, off_t length)
{
	return faults.cut_errno ? fail_once(&faults.cut_errno) : __real_ftruncate64(fd, length);
}

int __wrap_ftruncate(int fd, off_t length)
{
	return __wrap_ftruncate64(fd, length);
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	faults.writes++;
	if (faults.interrupt && faults.writes % faults.interrupt == 0) {
		errno = EINTR;
		return -1;
	}
	if (faults.write_max && size > faults.write_max)
		size = faults.write_max;
	if (faults.write_errno) {
		if (faults.write_left == 0)
			return fail_once(&faults.write_errno);
		if (size > faults.write_left)
			size = faults.write_left;
		faults.write_left -= size;
	}
	return __real_write(fd, data, size);
}

/* A case with two lines that are there, and a connected transport with three more in the batch. */
static struct outbox_transport *begin(struct transport_case *c, off_t *ret_length)
{
	struct outbox_transport *transport;

	memset(&faults, 0, sizeof(faults));
	file_case_begin(c);
	transport = case_connect(c);
	case_messages(c, "before", 0, 2);
	case_publish_acked(c, transport);
	*ret_length = lines_length(file_case_path(c));
	case_new_batch(c);
	case_messages(c, "a", 0, 3);
	return transport;
}

static int publish(struct transport_case *c, struct outbox_transport *transport)
{
	return transport->ops->publish(transport, &c->batch, soon(), NULL);
}

static void assert_verdicts(const struct transport_case *c, int verdict)
{
	for (size_t i = 0; i < c->batch.count; i++)
		assert_int_equal(c->batch.items[i]->verdict, verdict);
}

/* Connect again, send the batch again: all that was ever ACKED is there, whole and once. */
static void go_on(struct transport_case *c, struct outbox_transport *transport, size_t lines)
{
	transport->ops->disconnect(transport);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_reset_verdicts(c);
	case_publish_acked(c, transport);
	transport_close(transport);
	case_read_back(c);
	assert_acked_arrived(c);
	assert_non_null(case_find(c, "before-1"));
	assert_int_equal(c->arrivals.count, lines);
	file_case_end(c);
}

static void sync_comes_before_acked(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;

	(void)state;
	transport = begin(&c, &length);
	assert_int_equal(faults.syncs, 1);
	case_publish_acked(&c, transport);
	assert_int_equal(faults.syncs, 2);
	transport_close(transport);
	file_case_end(&c);
}

/* The name of a new file must last as well as its lines. */
static void the_folder_of_a_new_file_is_synced(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;

	(void)state;
	transport = begin(&c, &length);
	assert_int_equal(faults.folder_syncs, 1);
	case_publish_acked(&c, transport);
	assert_int_equal(faults.folder_syncs, 1);
	assert_int_equal(unlink(file_case_path(&c)), 0);
	faults.folder_errno = EIO;
	case_reset_verdicts(&c);
	assert_int_equal(publish(&c, transport), OUTBOX_ECONN);
	assert_verdicts(&c, OUTBOX_VERDICT_UNSET);
	/* Not forgotten the next time. */
	transport->ops->disconnect(transport);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	assert_int_equal(faults.folder_syncs, 3);
	case_publish_acked(&c, transport);
	transport_close(transport);
	file_case_end(&c);
}

static void failed_sync_acks_nothing(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;

	(void)state;
	transport = begin(&c, &length);
	faults.sync_errno = EIO;
	faults.syncs = 0;
	assert_int_equal(publish(&c, transport), OUTBOX_ECONN);
	assert_verdicts(&c, OUTBOX_VERDICT_UNSET);
	assert_int_equal(lines_length(file_case_path(&c)), length);
	/* One call only, and its descriptor is gone: a second fdatasync on it could say yes. */
	assert_int_equal(faults.syncs, 1);
	assert_int_equal(fcntl(faults.sync_fd, F_GETFD), -1);
	assert_int_equal(publish(&c, transport), OUTBOX_ECONN);
	assert_int_equal(faults.syncs, 1);
	go_on(&c, transport, 5);
}

static void interrupted_sync_is_not_repeated(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;

	(void)state;
	transport = begin(&c, &length);
	faults.sync_errno = EINTR;
	faults.syncs = 0;
	assert_int_equal(publish(&c, transport), OUTBOX_ECONN);
	assert_int_equal(faults.syncs, 1);
	assert_verdicts(&c, OUTBOX_VERDICT_UNSET);
	go_on(&c, transport, 5);
}

static void full_disk_at_sync_is_an_outage(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;

	(void)state;
	transport = begin(&c, &length);
	faults.sync_errno = EDQUOT;
	assert_int_equal(publish(&c, transport), OUTBOX_EFULL);
	assert_verdicts(&c, OUTBOX_VERDICT_UNSET);
	assert_int_equal(lines_length(file_case_path(&c)), length);
	go_on(&c, transport, 5);
}

static void what_cannot_be_cut_is_unknown_and_cut_later(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;

	(void)state;
	transport = begin(&c, &length);
	faults.sync_errno = EIO;
	faults.cut_errno = EIO;
	assert_int_equal(publish(&c, transport), OUTBOX_ECONN);
	assert_verdicts(&c, OUTBOX_UNKNOWN);
	assert_true(lines_length(file_case_path(&c)) > length);
	transport->ops->disconnect(transport);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	assert_int_equal(lines_length(file_case_path(&c)), length);
	go_on(&c, transport, 5);
}

static void a_late_cut_spares_other_writers(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport, *other;
	struct outbox_batch batch;
	off_t length;

	(void)state;
	transport = begin(&c, &length);
	batch = c.batch;
	faults.sync_errno = EIO;
	faults.cut_errno = EIO;
	assert_int_equal(publish(&c, transport), OUTBOX_ECONN);
	/* Somebody else's line is behind ours now: ours stay, as duplicates. */
	case_new_batch(&c);
	case_messages(&c, "other", 0, 1);
	other = case_connect(&c);
	case_publish_acked(&c, other);
	transport_close(other);
	c.batch = batch;
	transport->ops->disconnect(transport);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_read_back(&c);
	assert_non_null(case_find(&c, "other-0"));
	go_on(&c, transport, 2 + 3 + 1 + 3);
}

static void short_and_interrupted_writes_are_finished(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;

	(void)state;
	transport = begin(&c, &length);
	faults.write_max = 7;
	faults.interrupt = 3;
	case_publish_acked(&c, transport);
	memset(&faults, 0, sizeof(faults));
	go_on(&c, transport, 8);
}

/* The write fails after each possible number of bytes. */
static void failed_write_leaves_no_half_line(void **state)
{
	static const struct {
		int number, status;
	} errors[] = {
		{ ENOSPC, OUTBOX_EFULL }, { EDQUOT, OUTBOX_EFULL }, { EFBIG, OUTBOX_EFULL },
		{ EIO, OUTBOX_ECONN },    { ESTALE, OUTBOX_ECONN },
	};
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;
	size_t total;

	(void)state;
	transport = begin(&c, &length);
	case_publish_acked(&c, transport);
	total = (size_t)(lines_length(file_case_path(&c)) - length);
	length = lines_length(file_case_path(&c));
	for (size_t left = 0; left < total; left++) {
		case_reset_verdicts(&c);
		faults.write_errno = errors[left % 5].number;
		faults.write_left = left;
		assert_int_equal(publish(&c, transport), errors[left % 5].status);
		assert_verdicts(&c, OUTBOX_VERDICT_UNSET);
		assert_int_equal(lines_length(file_case_path(&c)), length);
		transport->ops->disconnect(transport);
		assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	}
	go_on(&c, transport, 8);
}

static void rejected_ones_keep_their_verdict(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	off_t length;

	(void)state;
	transport = begin(&c, &length);
	c.messages[1].data = "no JSON";
	c.messages[1].size = 7;
	faults.sync_errno = EIO;
	assert_int_equal(publish(&c, transport), OUTBOX_ECONN);
	assert_int_equal(c.batch.items[0]->verdict, OUTBOX_VERDICT_UNSET);
	assert_int_equal(c.batch.items[1]->verdict, OUTBOX_REJECTED);
	assert_int_equal(c.batch.items[2]->verdict, OUTBOX_VERDICT_UNSET);
	transport_close(transport);
	file_case_end(&c);
}

static void without_fsync_nothing_is_synced(void **state)
{
	struct transport_case c;
	struct outbox_transport *transport;
	char url[256];

	(void)state;
	memset(&faults, 0, sizeof(faults));
	file_case_begin(&c);
	snprintf(url, sizeof(url), "%s?fsync=no", file_fixture.url(c.place));
	transport = case_open(&c, url, 0);
	assert_int_equal(connect_to(transport, NULL), OUTBOX_OK);
	case_messages(&c, "a", 0, 3);
	case_publish_acked(&c, transport);
	assert_int_equal(faults.syncs, 0);
	transport_close(transport);
	file_case_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sync_comes_before_acked),
		cmocka_unit_test(the_folder_of_a_new_file_is_synced),
		cmocka_unit_test(failed_sync_acks_nothing),
		cmocka_unit_test(interrupted_sync_is_not_repeated),
		cmocka_unit_test(full_disk_at_sync_is_an_outage),
		cmocka_unit_test(what_cannot_be_cut_is_unknown_and_cut_later),
		cmocka_unit_test(a_late_cut_spares_other_writers),
		cmocka_unit_test(short_and_interrupted_writes_are_finished),
		cmocka_unit_test(failed_write_leaves_no_half_line),
		cmocka_unit_test(rejected_ones_keep_their_verdict),
		cmocka_unit_test(without_fsync_nothing_is_synced),
	};

	return cmocka_run_group_tests_name("transport_file_faults", tests, NULL, NULL);
}
