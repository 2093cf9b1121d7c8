/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration with a failure at every allocation: it is loaded, shown and described as with memory
 * enough, or somebody says that there is none.
 */

#include "base/buf.h"
#include "config/config.h"
#include "drive.h"

#include <stdlib.h>
#include <string.h>

static const char text[] =
	"sources:\n"
	"  - { name: shop, store: 'postgres://app@${HOST:-db}/shop', password: p }\n"
	"targets:\n"
	"  - name: events\n"
	"    to: 'file:${HOME}/out.jsonl'\n"
	"    match: { type: [order.*, invoice.*], kind: event }\n"
	"    retry: { schedule: [1s, 2s] }\n"
	"relay: { batch: 5 }\n";

static char *const environment[] = { (char *)"HOME=/home/x", (char *)"OUTBOX_RELAY_WORKERS=2",
				     (char *)"OUTBOX_TARGETS_EVENTS_MATCH_TYPE=a,b", NULL };
static const char *const sets[] = { "targets.events.batch=7", "log.level=warn" };

struct trial {
	int (*call)(struct buf *said, struct outbox_error *err);
	char *wanted; /* what it said with memory enough */
};

static void row(void *context, const char *key, const char *value, const char *from)
{
	struct buf *said = context;
	bool armed = fault_pause();

	buf_printf(said, "%s=%s (%s)\n", key, value, from);
	fault_resume(armed);
}

static int call_load(struct buf *said, struct outbox_error *err)
{
	static struct problems problems;
	struct config_input input = { .file = "outbox.yaml",
				      .text = text,
				      .size = sizeof(text) - 1,
				      .sets = sets,
				      .n_sets = 2,
				      .environment = environment };
	struct outbox_relay_config relay;
	struct config *config = NULL;
	int r;

	memset(&problems, 0, sizeof(problems));
	r = config_read(&input, &config, &problems, err);
	if (r == OUTBOX_OK && problems.count)
		r = outbox_fail(err, OUTBOX_ECONFIG, "%s", problems.items[0].text);
	if (r == OUTBOX_OK)
		r = config_show(config, row, said, err);
	if (r == OUTBOX_OK)
		r = config_relay(config, config->sources.items, &relay, err);
	if (r == OUTBOX_OK)
		row(said, "store", relay.store, "");
	config_free(config);
	return r;
}

static int call_schema(struct buf *said, struct outbox_error *err)
{
	json_t *schema = config_json_schema();
	bool armed = fault_pause();
	char *dumped = schema ? json_dumps(schema, JSON_SORT_KEYS) : NULL;

	if (dumped)
		buf_text(said, dumped);
	free(dumped);
	json_decref(schema);
	fault_resume(armed);
	return schema ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static int call_reference(struct buf *said, struct outbox_error *err)
{
	struct buf reference = BUF_INIT((size_t)64 << 10);
	bool armed;
	int r = OUTBOX_OK;

	config_reference(&reference);
	armed = fault_pause();
	if (reference.failed)
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	else
		buf_text(said, buf_str(&reference));
	buf_deinit(&reference);
	fault_resume(armed);
	return r;
}

static void run(void *context)
{
	struct trial *t = context;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct buf said = BUF_INIT((size_t)1 << 20);
	int r;

	fault_on();
	r = t->call(&said, &err);
	fault_off();
	torture_check_answer(r, &err, buf_str(&said), &t->wanted);
	buf_deinit(&said);
}

int main(int argc, char **argv)
{
	struct trial load = { .call = call_load }, schema = { .call = call_schema },
		     reference = { .call = call_reference };

	torture_begin("config", argc, argv);
	torture(&(struct scenario){ "load", run, &load, 100, 0 });
	torture(&(struct scenario){ "schema", run, &schema, 100, 0 });
	torture(&(struct scenario){ "reference", run, &reference, 5, 0 });
	free(load.wanted);
	free(schema.wanted);
	free(reference.wanted);
	return torture_end();
}
