/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a relay by test_poison.py: a message whose payload says POISON kills whoever writes
 * it, as a message does that triggers a bug in a client library.
 */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int fd, const void *data, size_t size)
{
	static const char poison[] = "POISON";

	if (fd > STDERR_FILENO && memmem(data, size, poison, sizeof(poison) - 1))
		raise(SIGKILL);
	return syscall(SYS_write, fd, data, size);
}
