/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A service that embeds and operates the relay: it creates the outbox, passes each message to two handlers, checks
 * its health, requeues what failed and prints its metrics. docs/embedding.md quotes it.
 *
 *   cc embedded.c $(pkg-config --cflags --libs outbox sqlite3) && ./a.out embedded.db
 *
 * The file must be a new one: the ids of its messages are fixed, so that a second run publishes nothing.
 */

#include <outbox/outbox.h>
#include <outbox/sqlite.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct service {
	const char *path;
	char store[512];
	_Atomic int mail_is_up; /* handlers run in the relay's threads */
	struct outbox_admin *admin;
	struct outbox_registry *registry;
	struct outbox_relay *relay;
	struct outbox_arena *arena;
};

/* ---- publishing ---------------------------------------------------------------------------- */

static int in_transaction(sqlite3 *db, const char *sql, const struct outbox_message *message,
			  struct outbox_error *err)
{
	int status = OUTBOX_OK;

	/* SQLite allows one writer at a time: wait while the relay or another process writes. */
	sqlite3_busy_timeout(db, 5000);
	if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		status = outbox_fail(err, OUTBOX_ECONN, "%s", sqlite3_errmsg(db));
	if (status == OUTBOX_OK)
		status = outbox_publish_sqlite(db, message, err);
	if (status == OUTBOX_OK && sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		status = outbox_fail(err, OUTBOX_ECONN, "commit: %s", sqlite3_errmsg(db));
	if (status != OUTBOX_OK)
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return status;
}

static int write_and_publish(const struct service *service, const char *sql,
			     const struct outbox_message *message, struct outbox_error *err)
{
	sqlite3 *db = NULL;
	int status;

	if (sqlite3_open(service->path, &db) != SQLITE_OK)
		status = outbox_fail(err, OUTBOX_ECONN, "%s: %s", service->path, sqlite3_errmsg(db));
	else
		status = in_transaction(db, sql, message, err);
	sqlite3_close(db);
	return status;
}

static int place_order(const struct service *service, struct outbox_error *err)
{
	struct outbox_message message = OUTBOX_MESSAGE_INIT;

	message.id = "order-42";
	message.type = "order.placed";
	message.key = "42";
	message.data = "{\"id\":42}";
	message.size = strlen(message.data);
	return write_and_publish(service,
				 "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY);"
				 "INSERT OR REPLACE INTO orders (id) VALUES (42)",
				 &message, err);
}

/* ---- handlers ------------------------------------------------------------------------------ */

static int send_mail(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	const struct service *service = context;

	if (!atomic_load(&service->mail_is_up))
		return outbox_fail(err, OUTBOX_ECONN, "the mail server does not answer");
	printf("mail: %s, caused by %s\n", item->message->type,
	       item->message->causation_id ? item->message->causation_id : "a customer");
	return 0;
}

/* The invoice records which message caused it, and its own id makes a repeat harmless. */
static int write_invoice(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	const struct service *service = context;
	struct outbox_message invoice = OUTBOX_MESSAGE_INIT;
	char id[64];
	int status;

	snprintf(id, sizeof(id), "invoice-%s", item->message->key);
	invoice.id = id;
	invoice.type = "invoice.issued";
	invoice.key = item->message->key;
	invoice.data = "{}";
	invoice.size = 2;

	status = outbox_message_caused_by(&invoice, item->message, err);
	if (status == OUTBOX_OK)
		status =
			write_and_publish(service,
					  "CREATE TABLE IF NOT EXISTS invoices (id TEXT PRIMARY KEY);"
					  "INSERT OR IGNORE INTO invoices (id) VALUES ('invoice-42')",
					  &invoice, err);
	return status;
}

/* Two handlers for order.placed, each with its own table of handlers and its own target. */
static int add_handlers(struct service *service, struct outbox_error *err)
{
	struct outbox_registry *registry;
	int status = outbox_registry_new(&service->registry, err);

	if (status != OUTBOX_OK)
		return status;
	registry = service->registry;
	status = outbox_registry_handle_as(registry, "mailer", "*", send_mail, service, err);
	if (status == OUTBOX_OK)
		status = outbox_registry_handle_as(registry, "books", "order.placed", write_invoice,
						   service, err);
	return status;
}

/* ---- the relay ----------------------------------------------------------------------------- */

static int start_relay(struct service *service, struct outbox_error *err)
{
	struct outbox_target_config targets[2] = { OUTBOX_TARGET_CONFIG_INIT,
						   OUTBOX_TARGET_CONFIG_INIT };
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_policy once = *outbox_policy_find("default");
	static const char *const orders[] = { "order.*" };
	int status;

	once.max_attempts = 1; /* so that the example does not wait for retries */
	targets[0].name = "mail";
	targets[0].to = "handler:mailer";
	targets[0].policy = &once;
	targets[1].name = "books";
	targets[1].to = "handler:books";
	targets[1].route.types = orders;
	targets[1].route.n_types = 1;
	config.store = service->store;
	config.targets = targets;
	config.n_targets = 2;
	config.registry = service->registry;

	status = outbox_relay_new(&service->relay, &config, err);
	if (status == OUTBOX_OK)
		status = outbox_relay_start(service->relay, err);
	return status;
}

/* ---- operating ----------------------------------------------------------------------------- */

static int open_admin(struct service *service, struct outbox_error *err)
{
	struct outbox_admin_config config = OUTBOX_ADMIN_CONFIG_INIT;
	int status;

	config.store = service->store;
	config.actor = "the shop itself";
	config.name = "shop";
	status = outbox_admin_new(&service->admin, &config, err);
	if (status == OUTBOX_OK)
		status = outbox_admin_init(service->admin, NULL, err);
	return status;
}

/* Wait for these numbers of failed and delivered mails. Only the example does this; a service need not wait. */
static int wait_for_mail(struct service *service, int64_t failed, int64_t delivered,
			 struct outbox_error *err)
{
	const struct timespec moment = { 0, 20000000 };
	struct outbox_stats stats;

	for (int i = 0; i < 1500; i++) {
		int status;

		outbox_arena_reset(service->arena);
		status = outbox_admin_stats(service->admin, service->arena, &stats, err);
		if (status != OUTBOX_OK)
			return status;
		for (size_t t = 0; t < stats.n_targets; t++)
			if (strcmp(stats.targets[t].name, "mail") == 0 &&
			    stats.targets[t].failed == failed &&
			    stats.targets[t].delivered_ever >= delivered)
				return OUTBOX_OK;
		nanosleep(&moment, NULL);
	}
	return outbox_fail(err, OUTBOX_ETIMEDOUT, "the mail did not go out in 30 seconds");
}

static int print_health(struct service *service, struct outbox_error *err)
{
	static const char *const levels[] = { "healthy", "degraded", "unhealthy" };
	struct outbox_health health;
	int status;

	status = outbox_admin_health(service->admin, service->arena, &health, err);
	if (status != OUTBOX_OK)
		return status;
	printf("health: %s\n", levels[health.level]);
	for (size_t i = 0; i < health.count; i++)
		printf("  %s %s: %s\n",
		       health.findings[i].target ? health.findings[i].target : "store",
		       health.findings[i].rule, health.findings[i].text);
	return OUTBOX_OK;
}

static int requeue_mail(struct service *service, struct outbox_error *err)
{
	struct outbox_filter filter = OUTBOX_FILTER_INIT;
	struct outbox_acted acted;
	int status;

	filter.target = "mail";
	filter.state = OUTBOX_FAILED;
	status = outbox_admin_requeue(service->admin, &filter, "the mail server is back", &acted,
				      err);
	if (status == OUTBOX_OK)
		printf("requeued %zu\n", acted.done);
	return status;
}

static int print_metrics(struct service *service, struct outbox_error *err)
{
	struct outbox_metrics_source source = OUTBOX_METRICS_SOURCE_INIT;
	const char *text;
	int status;

	source.admin = service->admin;
	source.relay = service->relay;
	status = outbox_metrics_text(&source, 1, service->arena, &text, err);
	if (status == OUTBOX_OK)
		fputs(text, stdout); /* a service returns this for GET /metrics */
	return status;
}

/* ---- the story of one order ------------------------------------------------------------------ */

static int operate(struct service *service, struct outbox_error *err)
{
	int status = place_order(service, err);

	/* the order and the invoice that follows from it */
	if (status == OUTBOX_OK)
		status = wait_for_mail(service, 2, 0, err);
	if (status == OUTBOX_OK)
		status = print_health(service, err);
	atomic_store(&service->mail_is_up, 1);
	if (status == OUTBOX_OK)
		status = requeue_mail(service, err);
	if (status == OUTBOX_OK)
		status = wait_for_mail(service, 0, 2, err);
	if (status == OUTBOX_OK)
		status = print_health(service, err);
	return status == OUTBOX_OK ? print_metrics(service, err) : status;
}

int main(int argc, char **argv)
{
	struct service service = { .path = argc > 1 ? argv[1] : "app.db" };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int status;

	snprintf(service.store, sizeof(service.store), "sqlite:%s", service.path);
	service.arena = outbox_arena_new((size_t)64 << 20);
	if (!service.arena)
		status = outbox_fail(&err, OUTBOX_ENOMEM, "out of memory");
	else
		status = open_admin(&service, &err);
	if (status == OUTBOX_OK)
		status = add_handlers(&service, &err);
	if (status == OUTBOX_OK)
		status = start_relay(&service, &err);
	if (status == OUTBOX_OK)
		status = operate(&service, &err);
	if (service.relay && status == OUTBOX_OK)
		status = outbox_relay_stop(service.relay, 10 * OUTBOX_SECONDS, &err);
	if (status != OUTBOX_OK)
		fprintf(stderr, "embedded: %s\n", err.message);
	outbox_relay_free(service.relay);
	outbox_registry_free(service.registry);
	outbox_admin_free(service.admin);
	outbox_arena_free(service.arena);
	return status == OUTBOX_OK ? 0 : 1;
}
