/* SPDX-License-Identifier: Apache-2.0 */

/* The program itself, from outside: memory over many messages, CPU when idle, time to start. */

#include "bench.h"

#include "base/cleanup.h"

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

static double time_run(const char *program, char *const argv[])
{
	double start = now_seconds();
	pid_t pid = spawn(program, argv);
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		die(argv[1] ? argv[1] : program, "it failed");
	return (now_seconds() - start) * 1000;
}

void bench_start(const char *path, const char *outbox)
{
	static char store[600];
	static char words[7][16] = { "outbox", "version", "publish", "--store",
				     "--type", "--data",  "{}" };
	char *version[] = { words[0], words[1], NULL };
	char *publish[] = { words[0], words[2], words[3], store, words[4],
			    words[2], words[5], words[6], NULL };
	char *empty[] = { words[0], NULL },
	     *insert[] = { words[0], store + strlen("sqlite:"), NULL };
	const struct {
		const char *what, *program;
		char *const *argv;
	} runs[] = {
		{ "outbox version", outbox, version },
		{ "outbox publish", outbox, publish },
		{ "one INSERT with SQLite alone", BENCH_FOLDER "insert", insert },
		{ "an empty program with the same libraries", BENCH_FOLDER "empty-linked", empty },
		{ "an empty program", BENCH_FOLDER "empty", empty },
	};
	struct series times[ARRAY_SIZE(runs)] = { 0 };

	snprintf(store, sizeof(store), "sqlite:%s", path);
	for (int i = 0; i < REPEATS_MAX; i++)
		for (size_t j = 0; j < ARRAY_SIZE(runs); j++)
			series_add(&times[j], time_run(runs[j].program, runs[j].argv));
	for (size_t j = 0; j < ARRAY_SIZE(runs); j++)
		printf("{\"bench\":\"start\",\"what\":\"%s\",\"unit\":\"ms\",\"median\":%.2f,\"repeats\":%zu}\n",
		       runs[j].what, series_median(&times[j]), times[j].count);
	fflush(stdout);
}
