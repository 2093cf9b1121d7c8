/* SPDX-License-Identifier: Apache-2.0 */

/* The program itself, from outside: memory over many messages, CPU when idle, time to start. */

#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t spawn(const char *outbox, char *const argv[])
{
	char *const environment[] = { NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	error = posix_spawn(&pid, outbox, &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		die(outbox, strerror(error));
	return pid;
}

static pid_t spawn_relay(const char *outbox, const char *path, bool until_idle)
{
	static char store[600];
	static char words[5][16] = { "outbox", "relay", "--store", "--to", "--until-idle" };
	static char to[] = "events=null:";
	char *argv[] = {
		words[0], words[1], words[2], store, words[3], to, until_idle ? words[4] : NULL,
		NULL
	};

	snprintf(store, sizeof(store), "sqlite:%s", path);
	return spawn(outbox, argv);
}

static void rest(long milliseconds)
{
	struct timespec t = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

void bench_memory(const char *path, const char *outbox, const struct sizes *sizes)
{
	sqlite3 *db = db_open(path);
	long peak = 0;
	double start;
	int status;
	pid_t pid;

	fill(db, sizes->memory_messages);
	sqlite3_close(db);
	start = now_seconds();
	pid = spawn_relay(outbox, path, true);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		long kib = peak_kib(pid);

		peak = kib > peak ? kib : peak;
		rest(10);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		die("outbox relay", "it failed");
	printf("{\"bench\":\"memory\",\"messages\":%d,\"unit\":\"MiB\",\"peak_rss\":%.1f,\"limit\":32,"
	       "\"seconds\":%.1f}\n",
	       sizes->memory_messages, (double)peak / 1024, now_seconds() - start);
	fflush(stdout);
}

/* User and system time of a process, in clock ticks. */
static long cpu_ticks(pid_t pid)
{
	char path[64], text[1024], *field;
	long user = 0, kernel = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		die("outbox relay", "it ended by itself");
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	field = strrchr(text, ')'); /* fields 14 and 15; the name ends field 2 */
	for (int i = 2; field && i < 14; i++)
		field = strchr(field + 1, ' ');
	if (field)
		user = strtol(field, &field, 10);
	if (field)
		kernel = strtol(field, NULL, 10);
	return user + kernel;
}

void bench_idle(const char *path, const char *outbox, const struct sizes *sizes)
{
	pid_t pid = spawn_relay(outbox, path, false);
	double start;
	long ticks;

	rest(1500); /* started, and what there was to do is done */
	ticks = cpu_ticks(pid);
	start = now_seconds();
	rest(sizes->idle_seconds * 1000L);
	ticks = cpu_ticks(pid) - ticks;
	printf("{\"bench\":\"idle\",\"unit\":\"%% of a core\",\"cpu\":%.2f,\"limit\":1,"
	       "\"seconds\":%d}\n",
	       100.0 * (double)ticks / (double)sysconf(_SC_CLK_TCK) / (now_seconds() - start),
	       sizes->idle_seconds);
	fflush(stdout);
	kill(pid, SIGTERM);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void bench_start(const char *outbox, const struct sizes *sizes)
{
	static char words[2][16] = { "outbox", "version" };
	char *argv[] = { words[0], words[1], NULL };
	struct series times = { 0 };

	(void)sizes;
	for (int i = 0; i < REPEATS_MAX; i++) {
		double start = now_seconds();
		int status;
		pid_t pid = spawn(outbox, argv);

		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			die("outbox version", "it failed");
		series_add(&times, (now_seconds() - start) * 1000);
	}
	printf("{\"bench\":\"start\",\"unit\":\"ms\",\"median\":%.2f,\"limit\":20,\"repeats\":%zu}\n",
	       series_median(&times), times.count);
	fflush(stdout);
}
