/* SPDX-License-Identifier: Apache-2.0 */

/*
 * reader --url URL --log FILE [--seed N] [--init LANES] [--target NAME[=TYPE]]... [--owners N]
 *        [--calm CHUNK --bytes N] [--reconnect 1]
 *
 * Reads every lane of every target with so many owners that rob each other, and writes each arrival to
 * the log: "D target lane seq id key" is sent, "A target seq" sent and never settled: it may come again.
 * Works until its standard input ends, and then until nothing is left. Whatever comes there: no more trouble.
 */
#include "reader.h"

#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct outbox_store_ops postgres_store_ops;

#define TARGETS_MAX 4
#define OWNERS_MAX 64

struct plan {
	struct stage stage;
	struct {
		char name[64];
		const char *type; /* NULL: all */
	} targets[TARGETS_MAX];
	int n_targets, lanes, owners_each;
	struct owner *owners;
	int n_owners;
};

static void usage(const char *why)
{
	fprintf(stderr, "reader: %s\n", why);
	exit(2);
}

static void add_target(struct plan *plan, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : strlen(text);

	if (plan->n_targets == TARGETS_MAX)
		usage("too many targets");
	snprintf(plan->targets[plan->n_targets].name, sizeof(plan->targets[0].name), "%.*s",
		 (int)length, text);
	plan->targets[plan->n_targets++].type = equals ? equals + 1 : NULL;
}

static void parse(struct plan *plan, int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];

		if (strcmp(name, "--url") == 0)
			plan->stage.url = value;
		else if (strcmp(name, "--log") == 0)
			plan->stage.log = fopen(value, "we");
		else if (strcmp(name, "--seed") == 0)
			plan->stage.seed = strtoull(value, NULL, 10);
		else if (strcmp(name, "--init") == 0)
			plan->lanes = atoi(value);
		else if (strcmp(name, "--owners") == 0)
			plan->owners_each = atoi(value);
		else if (strcmp(name, "--target") == 0)
			add_target(plan, value);
		else if (strcmp(name, "--calm") == 0)
			plan->stage.calm = (plan->stage.chunk = strtoul(value, NULL, 10)) > 0;
		else if (strcmp(name, "--reconnect") == 0)
			plan->stage.reconnect = true;
		else if (strcmp(name, "--bytes") == 0)
			plan->stage.bytes = strtoul(value, NULL, 10);
		else
			usage(name);
	}
	if (!plan->stage.url || !plan->stage.log || plan->stage.chunk > OWNER_ITEMS_MAX)
		usage("give --url, a --log that can be written, and a --calm of at most 1000");
	setvbuf(plan->stage.log, NULL, _IOLBF, 0); /* others follow it */
	if (!plan->n_targets)
		add_target(plan, "all");
}

static void must(int r, const char *what, const struct outbox_error *err)
{
	if (r == OUTBOX_OK)
		return;
	printf("PROBLEM %s: %s\n", what, err->message);
	exit(1);
}

/* The schema, unless it is there already, and the targets. */
static void prepare(struct plan *plan, int64_t *versions)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct random_state random;
	struct outbox_store_config config = { .struct_size = sizeof(config),
					      .url = plan->stage.url,
					      .clock = outbox_clock_system(),
					      .random = &random.base };
	struct outbox_init_options options = { .struct_size = sizeof(options), .lanes = plan->lanes };
	struct outbox_store_info info;
	struct outbox_store *store;

	random_init(&random, plan->stage.seed);
	must(store_open(&postgres_store_ops, &config, true, &store, &err), "open", &err);
	must(store_init(store, &options, &err), "init", &err);
	must(store_info(store, &info, &err), "info", &err);
	plan->lanes = info.lanes;
	for (int t = 0; t < plan->n_targets; t++) {
		const char *types[] = { plan->targets[t].type };
		struct outbox_target_def def = { .name = plan->targets[t].name,
						 .route = { .types = types,
							    .n_types = types[0] ? 1 : 0 },
						 .start = OUTBOX_START_OLDEST };

		must(store_target_put(store, &def, &versions[t], &err), "target_put", &err);
	}
	store_close(store);
}

static void start(struct plan *plan, const int64_t *versions)
{
	int each = plan->stage.calm ? 1 : plan->owners_each, number = 0;

	plan->n_owners = plan->n_targets * plan->lanes * each;
	if (plan->n_owners > OWNERS_MAX)
		usage("too many owners");
	plan->owners = calloc((size_t)plan->n_owners, sizeof(*plan->owners));
	if (!plan->owners)
		usage("out of memory");
	for (; number < plan->n_owners; number++) {
		int t = number / each / plan->lanes;

		owner_init(&plan->owners[number], &plan->stage, plan->targets[t].name,
			   number / each % plan->lanes, number);
		plan->owners[number].version = versions[t];
		plan->owners[number].robber = number % each != 0;
	}
	for (int i = 0; !plan->stage.calm && i + each < plan->n_owners; i++)
		if (plan->owners[i].lane % 2 == 0 && plan->owners[i + each].lane % 2 == 1) {
			plan->owners[i].partner = &plan->owners[i + each];
			plan->owners[i + each].shares = true;
		}
	printf("ready\n");
	fflush(stdout);
	for (int i = 0; i < plan->n_owners; i++)
		if (!plan->owners[i].shares &&
		    pthread_create(&plan->owners[i].thread, NULL, owner_run, &plan->owners[i]) != 0)
			usage("no thread");
}

int main(int argc, char **argv)
{
	struct plan plan = { .owners_each = 2, .stage = { .seed = 1, .bytes = (size_t)1 << 20 } };
	struct stage *stage = &plan.stage;
	int64_t versions[TARGETS_MAX];
	char byte;

	pthread_mutex_init(&stage->lock, NULL);
	parse(&plan, argc, argv);
	prepare(&plan, versions);
	start(&plan, versions);
	while (read(STDIN_FILENO, &byte, 1) > 0) {
		pthread_mutex_lock(&stage->lock);
		stage->quiet = true;
		pthread_mutex_unlock(&stage->lock);
	}
	pthread_mutex_lock(&stage->lock);
	stage->draining = true;
	pthread_mutex_unlock(&stage->lock);
	for (int i = 0; i < plan.n_owners; i++)
		if (!plan.owners[i].shares)
			pthread_join(plan.owners[i].thread, NULL);
	for (int i = 0; i < plan.n_owners; i++)
		owner_deinit(&plan.owners[i]);
	free(plan.owners);
	if (fclose(stage->log) != 0)
		stage_problem(stage, "the log cannot be written");
	printf("delivered %ld, sent in vain %ld, takes %ld, fenced %ld, asked again %ld, together %ld,"
	       " idle polls %ld\n",
	       stage->delivered, stage->abandoned, stage->takes, stage->fenced, stage->repeated,
	       stage->joined, stage->idle);
	return stage->problems ? 1 : 0;
}
