/* SPDX-License-Identifier: Apache-2.0 */

/* The relay process: the library's relay with our own transport, and how processes are started. */

#include "orders.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

void wait_ms(long milliseconds)
{
	struct timespec rest = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	while (nanosleep(&rest, &rest) < 0 && errno == EINTR && !stopping)
		;
}

static void log_to_file(void *context, const struct outbox_log_event *event)
{
	static const char *const names[] = { "debug", "info", "warning", "error" };

	fprintf(context, "%s: %s %s\n", names[event->level & 3], event->name, event->text);
	fflush(context);
}

static void counts_path(const struct place *place, const char *instance, char *out, size_t size)
{
	snprintf(out, size, "%s/%s.outages", place->folder, instance);
}

/* Written whole and renamed, so that the reader never sees half a number. */
static void write_outages(const struct place *place, const char *instance,
			  const struct outbox_relay *relay)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	char path[600], fresh[640];
	FILE *file;

	outbox_relay_counts(relay, &counts);
	counts_path(place, instance, path, sizeof(path));
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	file = fopen(fresh, "w");
	if (!file)
		return;
	fprintf(file, "%llu\n", (unsigned long long)counts.outages);
	if (fclose(file) == 0)
		(void)rename(fresh, path);
}

long relay_outages(const struct place *place, const char *instance)
{
	char path[600], text[32] = "";
	FILE *file;

	counts_path(place, instance, path, sizeof(path));
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return strtol(text, NULL, 10);
}

static int run_relay(const char *instance, const struct place *place,
		     const struct outbox_registry *registry, FILE *log, struct outbox_error *err)
{
	struct outbox_policy policy = {
		.struct_size = sizeof(policy),
		.name = "demo",
		.max_attempts = 3,
		.n_schedule = 2,
		.schedule = { 300 * OUTBOX_MILLISECONDS, 300 * OUTBOX_MILLISECONDS },
	};
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay *relay = NULL;
	char to[640];
	int status;

	snprintf(to, sizeof(to), "demo:%s", place->broker);
	target.name = "events";
	target.to = to;
	target.policy = &policy;
	config.store = place->store;
	config.targets = &target;
	config.n_targets = 1;
	config.instance = instance;
	config.registry = registry;
	config.batch_messages = 10;
	config.lease = 2 * OUTBOX_SECONDS; /* short, so that the demo is short */
	config.publish_timeout = 1 * OUTBOX_SECONDS;
	config.breaker_min = 100 * OUTBOX_MILLISECONDS;
	config.breaker_max = 400 * OUTBOX_MILLISECONDS;
	config.log = log_to_file;
	config.log_context = log;

	status = outbox_relay_new(&relay, &config, err);
	if (status == OUTBOX_OK)
		status = outbox_relay_start(relay, err);
	while (status == OUTBOX_OK && !stopping) {
		write_outages(place, instance, relay);
		wait_ms(50);
	}
	if (status == OUTBOX_OK)
		status = outbox_relay_stop(relay, 5 * OUTBOX_SECONDS, err);
	outbox_relay_free(relay);
	return status;
}

int relay_main(const char *instance, const struct place *place)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct outbox_registry *registry = NULL;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	char path[600];
	FILE *log;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGTERM); /* end with the demo if that is interrupted */
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	snprintf(path, sizeof(path), "%s/%s.log", place->folder, instance);
	log = fopen(path, "w");
	if (!log) {
		perror(path);
		return 1;
	}
	status = outbox_registry_new(&registry, &err);
	if (status == OUTBOX_OK)
		status = outbox_registry_add_transport(registry, &broker_ops, NULL, &err);
	if (status == OUTBOX_OK)
		status = run_relay(instance, place, registry, log, &err);
	outbox_registry_free(registry);
	fclose(log);
	if (status != OUTBOX_OK)
		fprintf(stderr, "orders: %s: %s\n", instance, err.message);
	return status == OUTBOX_OK ? 0 : 1;
}

pid_t relay_spawn(const char *program, const char *instance, const struct place *place)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl(program, program, "--relay", instance, "--dir", place->folder, (char *)NULL);
		perror(program);
		_exit(127);
	}
	return pid;
}

int run_command(char *const argv[])
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		if (null >= 0)
			dup2(null, STDOUT_FILENO); /* stderr is still shown */
		execv(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
