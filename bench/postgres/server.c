/* SPDX-License-Identifier: Apache-2.0 */

#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

PGconn *pg_open(const char *url)
{
	PGconn *db = PQconnectdb(url);

	if (PQstatus(db) != CONNECTION_OK)
		die(url, PQerrorMessage(db));
	pg_run(db, "SET client_min_messages = warning");
	return db;
}

void pg_check(PGconn *db, PGresult *result, ExecStatusType wanted, const char *what)
{
	if (PQresultStatus(result) != wanted)
		die(what, PQerrorMessage(db));
}

void pg_run(PGconn *db, const char *sql)
{
	PGresult *result = PQexec(db, sql);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		die(sql, PQerrorMessage(db));
	PQclear(result);
}

double pg_number(PGconn *db, const char *sql)
{
	PGresult *result = PQexec(db, sql);
	double number;

	pg_check(db, result, PGRES_TUPLES_OK, sql);
	number = PQntuples(result) ? strtod(PQgetvalue(result, 0, 0), NULL) : 0;
	PQclear(result);
	return number;
}

void pg_runf(PGconn *db, const char *format, ...)
{
	char sql[2000];
	va_list values;

	va_start(values, format);
	vsnprintf(sql, sizeof(sql), format, values);
	va_end(values);
	pg_run(db, sql);
}

double pg_numberf(PGconn *db, const char *format, ...)
{
	char sql[2000];
	va_list values;

	va_start(values, format);
	vsnprintf(sql, sizeof(sql), format, values);
	va_end(values);
	return pg_number(db, sql);
}

double server_wal(PGconn *db)
{
	return pg_number(db, "SELECT pg_current_wal_insert_lsn() - '0/0'");
}

double server_commits(PGconn *db)
{
	return pg_number(db, "SELECT xact_commit FROM pg_stat_database"
			     " WHERE datname = current_database()");
}

/* Fields of /proc/PID/stat behind the name, from field 3 (the state) on. NULL: it is gone. */
static char *stat_fields(const char *pid, char *text, size_t size)
{
	char path[300], *field;
	size_t length;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return NULL;
	length = fread(text, 1, size - 1, file);
	fclose(file);
	text[length] = '\0';
	field = strrchr(text, ')');
	return field ? field + 2 : NULL;
}

/* Field 4 is the parent, 14 and 15 its own time, 16 and 17 that of children waited for. */
static double ticks_of(const char *pid, long parent, bool children)
{
	char text[2000], *field = stat_fields(pid, text, sizeof(text));
	long ticks = 0;

	for (int i = 3; field && i <= 17; i++) {
		char *end = strchr(field, ' ');

		if (i == 4 && parent && strtol(field, NULL, 10) != parent)
			return 0;
		if (i == 14 || i == 15 || (children && i > 15))
			ticks += strtol(field, NULL, 10);
		field = end ? end + 1 : NULL;
	}
	return (double)ticks;
}

double process_cpu(int pid)
{
	unsigned long long nanoseconds;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%llu", &nanoseconds) != 1)
		die(path, "cannot be read");
	fclose(file);
	return (double)nanoseconds / 1e9;
}

double server_cpu(const struct bench *bench)
{
	char path[600], pid[32] = "";
	struct dirent *entry;
	long postmaster;
	double ticks;
	FILE *file;
	DIR *proc;

	snprintf(path, sizeof(path), "%s/postmaster.pid", bench->data);
	file = fopen(path, "re");
	if (!file || !fgets(pid, sizeof(pid), file))
		die(path, "cannot be read");
	fclose(file);
	pid[strcspn(pid, "\n")] = '\0';
	postmaster = strtol(pid, NULL, 10);
	ticks = ticks_of(pid, 0, true);
	proc = opendir("/proc");
	if (!proc)
		die("/proc", strerror(errno));
	while ((entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			ticks += ticks_of(entry->d_name, postmaster, false);
	closedir(proc);
	return ticks / (double)sysconf(_SC_CLK_TCK);
}

void rest(long milliseconds)
{
	struct timespec t = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

pid_t spawn(char *const argv[])
{
	char *const environment[] = { NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	int error;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	if (!getenv("BENCH_VERBOSE"))
		posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	error = posix_spawn(&pid, argv[0], &actions, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		die(argv[0], strerror(error));
	return pid;
}

static void wait_for(pid_t pid, const char *what)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die(what, strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		die(what, "it failed");
}

void end_process(pid_t pid)
{
	kill(pid, SIGTERM);
	wait_for(pid, "outbox relay");
}

pid_t spawn_relay(const struct place *place, const char *target, bool oldest)
{
	char outbox[600], url[300], to[80], start[80];
	char words[][12] = { "relay", "--store", "--to", "--start", "--lease", "3s" };
	char *argv[] = { outbox,   words[0], words[1], url,      words[2], to,
			 words[3], start,    words[4], words[5], NULL };

	snprintf(outbox, sizeof(outbox), "%s", place->bench->outbox);
	snprintf(url, sizeof(url), "%s", place->url);
	snprintf(to, sizeof(to), "%s=null:", target);
	snprintf(start, sizeof(start), "%s=%s", target, oldest ? "oldest" : "now");
	return spawn(argv);
}

const char *place_target(void)
{
	static char name[32];
	static int number;

	snprintf(name, sizeof(name), "pass-%d", ++number);
	return name;
}

void place_make(struct place *place, const struct bench *bench, const char *name, int lanes)
{
	char outbox[600], number[16], words[][12] = { "init", "--store", "--lanes" };
	char *argv[] = { outbox, words[0], words[1], place->url, words[2], number, NULL };
	PGconn *db;

	snprintf(place->url, sizeof(place->url), "%s/postgres", bench->server);
	db = pg_open(place->url);
	pg_runf(db, "CREATE DATABASE %s", name);
	PQfinish(db);
	place->bench = bench;
	snprintf(place->url, sizeof(place->url), "%s/%s", bench->server, name);
	snprintf(outbox, sizeof(outbox), "%s", bench->outbox);
	snprintf(number, sizeof(number), "%d", lanes);
	wait_for(spawn(argv), "outbox init");
	place->db = pg_open(place->url);
}

void place_end(struct place *place)
{
	PQfinish(place->db);
	place->db = NULL;
}

void place_fill(struct place *place, int n)
{
	place_fill_keys(place, n, 10000);
}

void place_fill_keys(struct place *place, int n, int keys)
{
	for (int done = 0; done < n; done += 10000)
		pg_runf(place->db,
			"INSERT INTO outbox_message (type, key, payload)"
			" SELECT 'bench.message', 'key-' || i %% %d, '%s' FROM generate_series(1, %d) i",
			keys, payload(), n - done < 10000 ? n - done : 10000);
	pg_run(place->db, "VACUUM ANALYZE outbox_message");
}
