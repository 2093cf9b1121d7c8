/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every transport with a fault at every allocation and every I/O call. What is ACKED is there (in a file:
 * durable, in a model of a disk that loses what a failed sync left), what was promised not to be sent is
 * not, nobody is charged or rejected for a fault, and once it is over every message arrives.
 */

#include "courier.h"
#include "drive.h"
#include "memory_transport/memory.h"
#include "transport/handler/handler.h"
#include "wrap_io.h"

#include <jansson.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct outbox_transport_ops file_transport_ops;
extern const struct outbox_transport_ops null_transport_ops;

static char folder[64], path[96], url[128];
static char content[1 << 16];

static void die(const char *what)
{
	perror(what);
	abort();
}

/* ---- file: and stdout: --------------------------------------------------------------------- */

static void start_file(const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
	disk_watch(path);
}

static size_t read_file(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : pread(fd, content, sizeof(content) - 1, 0);

	if (n < 0)
		die(path);
	close(fd);
	content[n] = '\0';
	return (size_t)n;
}

/* A whole line with this id. */
static bool line_arrived(const char *id, bool durable)
{
	char wanted[32];
	char *line = content, *end;

	read_file();
	snprintf(wanted, sizeof(wanted), "\"id\":\"%s\"", id);
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (strncmp(line, "{\"specversion\"", 14) == 0 && strstr(line, wanted) &&
		    (!durable || disk_durable(line - content, (size_t)(end + 1 - line))))
			return true;
	}
	return false;
}

static void check_lines(void)
{
	char *line = content, *end;

	if (read_file() == 0 || content[strlen(content) - 1] != '\n')
		torture_wrong("the file ends in half a line");
	for (; (end = strchr(line, '\n')); line = end + 1) {
		json_t *json;

		*end = '\0';
		json = json_loads(line, 0, NULL);
		if (!json)
			torture_wrong("not a line of JSON: %.60s", line);
		json_decref(json);
	}
}

static void run_file(void *context)
{
	static const struct courier courier = {
		.url = url, .ops = &file_transport_ops, .rejects = true, .arrived = line_arrived
	};

	/* A whole line, and one that its writer did not finish. */
	start_file(context);
	courier_run(&courier);
	check_lines();
	unlink(path);
}

static void run_stdout(void *context)
{
	static const struct courier courier = {
		.url = "stdout:", .ops = &file_transport_ops, .rejects = true, .arrived = line_arrived
	};
	int saved = dup(STDOUT_FILENO), fd;

	(void)context;
	start_file("");
	fd = open(path, O_WRONLY | O_APPEND);
	if (saved < 0 || fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
		die("stdout");
	close(fd);
	courier_run(&courier);
	if (dup2(saved, STDOUT_FILENO) < 0)
		die("stdout");
	close(saved);
	unlink(path);
}

/* ---- those without I/O ---------------------------------------------------------------------- */

static struct memory_broker *broker;
static char seen[256];

static bool broker_arrived(const char *id, bool durable)
{
	size_t n = memory_broker_count(broker);

	for (size_t i = 0; i < n; i++) {
		const struct memory_record *record = memory_broker_at(broker, i);

		if (strcmp(record->id, id) == 0 && (!durable || record->confirmed))
			return true;
	}
	return false;
}

static void run_memory(void *context)
{
	struct courier courier = { .url = "memory:",
				   .ops = &memory_transport_ops,
				   .envelope = OUTBOX_ENVELOPE_CE_STRUCTURED,
				   .rejects = true,
				   .arrived = broker_arrived };

	(void)context;
	if (memory_broker_new(&broker, NULL) != OUTBOX_OK)
		abort();
	courier.context = broker;
	courier_run(&courier);
	memory_broker_free(broker);
}

static bool handler_arrived(const char *id, bool durable)
{
	(void)durable;
	return strstr(seen, id) != NULL;
}

static int receive(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	(void)context;
	(void)err;
	strcat(seen, item->message->id);
	return 0;
}

static int make_table(struct handler_table **ret_table, struct outbox_error *err)
{
	struct handler_table *table = NULL;
	int r = handler_table_new(&table, err);

	if (r == OUTBOX_OK)
		r = handler_table_add(table, "order.placed", receive, NULL, err);
	if (r == OUTBOX_OK)
		r = handler_table_add(table, "*", receive, NULL, err);
	if (r != OUTBOX_OK)
		handler_table_free(table);
	else
		*ret_table = table;
	return r;
}

static void run_handler(void *context)
{
	struct courier courier = {
		.url = "handler:", .ops = &handler_transport_ops, .arrived = handler_arrived
	};
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct handler_table *table = NULL;
	int r;

	(void)context;
	seen[0] = '\0';
	fault_on();
	r = make_table(&table, &err);
	fault_off();
	if (r != OUTBOX_OK)
		torture_check_error(r, &err);
	if (r != OUTBOX_OK && make_table(&table, &err) != OUTBOX_OK)
		torture_wrong("no table without a fault: %s", err.message);
	courier.context = table;
	courier_run(&courier);
	handler_table_free(table);
}

static bool always(const char *id, bool durable)
{
	(void)id;
	(void)durable;
	return true;
}

static void run_null(void *context)
{
	static const struct courier courier = {
		.url = "null:", .ops = &null_transport_ops, .arrived = always
	};

	(void)context;
	courier_run(&courier);
}

int main(int argc, char **argv)
{
	static char empty[] = "";
	static char torn[] = "{\"specversion\":\"1.0\",\"id\":\"old\"}\n{\"specversion\":\"1.";
	static const struct scenario scenarios[] = {
		{ "file", run_file, empty, 8, 20 },
		{ "file, torn tail", run_file, torn, 8, 25 },
		{ "stdout", run_stdout, NULL, 8, 10 },
		{ "memory", run_memory, NULL, 5, 0 },
		{ "handler", run_handler, NULL, 6, 0 },
		{ "null", run_null, NULL, 3, 0 },
	};

	torture_begin("torture transports", argc, argv);
	snprintf(folder, sizeof(folder), "/tmp/outbox-torture-XXXXXX");
	if (!mkdtemp(folder))
		die(folder);
	snprintf(path, sizeof(path), "%s/out.jsonl", folder);
	snprintf(url, sizeof(url), "file:%s", path);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		torture(&scenarios[i]);
	rmdir(folder);
	return torture_end();
}
