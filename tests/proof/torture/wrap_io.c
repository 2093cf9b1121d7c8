/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker sends the I/O calls of the transports here. Beside failing on cue, they keep a model of the
 * disk for one watched file: which of its bytes are durable. A sync that fails loses what was not durable
 * before it, for good, as Linux may do it; a later sync that succeeds does not bring it back.
 */

#include "wrap_io.h"
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTHING = 0, DIRTY, DURABLE, DROPPED };

static struct {
	struct stat file; /* watched */
	unsigned char bytes[1 << 20];
	bool on;
} disk;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names */
int __real_open64(const char *path, int flags, ...);
int __real_fcntl64(int fd, int command, ...);
int __real_fstat64(int fd, struct stat *st);
int __real_stat64(const char *path, struct stat *st);
int __real_ftruncate64(int fd, off_t size);
ssize_t __real_pread64(int fd, void *data, size_t size, off_t place);
ssize_t __real_write(int fd, const void *data, size_t size);
int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_flock(int fd, int operation);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fstat64(int fd, struct stat *st);
int __wrap_stat64(const char *path, struct stat *st);
int __wrap_ftruncate64(int fd, off_t size);
ssize_t __wrap_pread64(int fd, void *data, size_t size, off_t place);
ssize_t __wrap_write(int fd, const void *data, size_t size);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_flock(int fd, int operation);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

void disk_watch(const char *path)
{
	memset(disk.bytes, NOTHING, sizeof(disk.bytes));
	disk.on = path && __real_stat64(path, &disk.file) == 0;
	if (disk.on)
		memset(disk.bytes, DURABLE, (size_t)disk.file.st_size);
}

bool disk_durable(off_t from, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (disk.bytes[(size_t)from + i] != DURABLE)
			return false;
	}
	return true;
}

static bool watched(int fd)
{
	struct stat st;

	return disk.on && __real_fstat64(fd, &st) == 0 && st.st_dev == disk.file.st_dev &&
	       st.st_ino == disk.file.st_ino;
}

static void settle(int fd, unsigned char state)
{
	if (!watched(fd))
		return;
	for (size_t i = 0; i < sizeof(disk.bytes); i++) {
		if (disk.bytes[i] == DIRTY)
			disk.bytes[i] = state;
	}
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return fault_errno(false) ? -1 : __real_open64(path, flags, mode);
}

int __wrap_fcntl64(int fd, int command, ...)
{
	va_list args;
	long argument;

	va_start(args, command);
	argument = va_arg(args, long);
	va_end(args);
	return fault_errno(false) ? -1 : __real_fcntl64(fd, command, argument);
}

int __wrap_fstat64(int fd, struct stat *st)
{
	return fault_errno(false) ? -1 : __real_fstat64(fd, st);
}

int __wrap_stat64(const char *path, struct stat *st)
{
	return fault_errno(false) ? -1 : __real_stat64(path, st);
}

int __wrap_ftruncate64(int fd, off_t size)
{
	if (fault_errno(false))
		return -1;
	if (watched(fd))
		memset(disk.bytes + size, NOTHING, sizeof(disk.bytes) - (size_t)size);
	return __real_ftruncate64(fd, size);
}

ssize_t __wrap_pread64(int fd, void *data, size_t size, off_t place)
{
	return fault_errno(false) ? -1 : __real_pread64(fd, data, size, place);
}

/* A disk that breaks or fills up takes a part first: a short write, and the error at the next. */
ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	static int owed;
	bool on = fault_pause();
	int number = on ? owed : 0;
	struct stat st;

	fault_resume(on);
	owed = 0;
	if (number) {
		errno = number;
		return -1;
	}
	if (fault_errno(true)) {
		if (size < 2)
			return -1;
		owed = errno;
		size /= 2;
	}
	if (watched(fd) && __real_fstat64(fd, &st) == 0)
		memset(disk.bytes + st.st_size, DIRTY, size);
	return __real_write(fd, data, size);
}

int __wrap_fdatasync(int fd)
{
	if (fault_errno(true)) {
		settle(fd, DROPPED);
		return -1;
	}
	settle(fd, DURABLE); /* believed: nothing here cuts the power */
	return 0;
}

int __wrap_fsync(int fd)
{
	if (fault_errno(true)) {
		settle(fd, DROPPED);
		return -1;
	}
	settle(fd, DURABLE);
	return 0;
}

int __wrap_flock(int fd, int operation)
{
	return fault_errno(false) ? -1 : __real_flock(fd, operation);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return fault_errno(false) ? -1 : __real_poll(fds, n, timeout);
}
/* NOLINTEND(bugprone-reserved-identifier) */
