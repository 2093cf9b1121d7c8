/* SPDX-License-Identifier: Apache-2.0 */
/* redact and cancel: what is done to one message as a whole, for a reason. */
#include "base/printable.h"
#include "base/text.h"
#include "cli/format.h"
#include "cli/terminal.h"
#include "core/lifecycle.h"
#include "operate/redact/redact_key.h"
#include "store/store.h"

#include <stdio.h>

struct values {
	const char *reason;
	const char *key, *key_like;
	bool dry_run, yes;
};

static const struct field cancel_options[] = {
	OPTION_REASON_REQUIRED,
};

static const struct field redact_options[] = {
	OPTION_REASON_REQUIRED,
	OPTION("key", FIELD_TEXT, key, "KEY", "instead of ID: every finished message of this key"),
	OPTION("key-like", FIELD_TEXT, key_like, "GLOB",
	       "every finished message whose key matches; * and ? are wildcards: customer-17/*"),
	OPTION("dry-run", FIELD_BOOL, dry_run, NULL,
	       "with a key: say what would be done, change nothing"),
	OPTION("yes", FIELD_BOOL, yes, NULL,
	       "with a key: do not ask for confirmation; required without a terminal"),
};

static int redact(const struct cli *cli, const char *reason, bool *ret_done, struct outbox_error *err)
{
	const struct outbox_redact how = { .struct_size = sizeof(how),
					   .id = cli->words[0],
					   .actor = cli->actor,
					   .reason = reason };

	return store_redact(cli->store, &how, ret_done, err);
}

static int cancel(const struct cli *cli, const char *reason, bool *ret_done, struct outbox_error *err)
{
	const struct outbox_cancel how = { .struct_size = sizeof(how),
					   .id = cli->words[0],
					   .actor = cli->actor,
					   .reason = reason };

	return store_cancel(cli->store, &how, ret_done, err);
}

static int act_on_one(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	const bool cancels = cli->command == &cmd_cancel;
	const char *id = cli->words[0], *said;
	bool done = false;
	int r = cli_open(cli, OPEN_READY, err);

	if (r == OUTBOX_OK)
		r = (cancels ? cancel : redact)(cli, given->reason, &done, err);
	if (r)
		return r;
	if (cli->json)
		return json_print((cancels ? json_cancelled : json_redacted)(id, done), err);
	if (cancels)
		said = done ? " was cancelled: no target sends it"
			    : " was cancelled before; nothing was changed";
	else
		said = done ? ": its payload, key, headers, subject and recorded errors were removed"
			    : " was redacted before; nothing was changed";
	printable_printf(stdout, "%s%s", id, said);
	return OUTBOX_OK;
}

/* ---- redact --key: every finished message of a key ------------------------------------------ */

#define UNFINISHED_SHOWN 20  /* on a screen */
#define UNFINISHED_KEPT 1000 /* for programs */

struct redacting {
	struct cli *cli;
	const struct values *given;
	struct redact_key work;
	json_t *unfinished; /* deliveries, the first of them */
	int64_t n_unfinished;
	int signal;
};

static const char *remedy(const struct outbox_delivery *row)
{
	if (!row->target)
		return "no target is registered yet: it waits for one";
	if (row->state == OUTBOX_FAILED)
		return "requeue it or discard it";
	if (row->state == OUTBOX_SENDING)
		return "wait a moment";
	if (row->why == OUTBOX_DEFERRED)
		return "wait until it is due, cancel it or discard it";
	return "wait until it is delivered, or discard it";
}

static void note_unfinished(void *context, const struct outbox_delivery *row)
{
	struct redacting *redacting = context;
	json_t *one;

	redacting->n_unfinished++;
	if (json_array_size(redacting->unfinished) == UNFINISHED_KEPT)
		return;
	one = json_pack("{s:o, s:o, s:o, s:s}", "id", json_text(row->id), "target",
			json_text(row->target), "state",
			json_text(row->target ? delivery_word(row) : NULL), "remedy", remedy(row));
	json_array_append_new(redacting->unfinished, one);
}

static void tell_unfinished(const struct redacting *redacting)
{
	const struct redact_key *work = &redacting->work;
	char count[COUNT_TEXT_MAX];

	if (!work->left)
		return;
	printable_printf(stderr, "%s message%s not finished and %s left as %s:",
			 count_human(work->left, count), work->left == 1 ? " is" : "s are",
			 work->left == 1 ? "was" : "were", work->left == 1 ? "it is" : "they are");
	for (size_t i = 0; i < json_array_size(redacting->unfinished) && i < UNFINISHED_SHOWN; i++) {
		json_t *one = json_array_get(redacting->unfinished, i);
		const char *target = json_string_value(json_object_get(one, "target"));
		const char *state = json_string_value(json_object_get(one, "state"));

		printable_printf(stderr, "  %s%s%s%s%s: %s",
				 json_string_value(json_object_get(one, "id")), target ? " to " : "",
				 target ? target : "", state ? " is " : "", state ? state : "",
				 json_string_value(json_object_get(one, "remedy")));
	}
	if (redacting->n_unfinished > UNFINISHED_SHOWN)
		printable_printf(stderr, "and %s more deliveries",
				 count_human(redacting->n_unfinished - UNFINISHED_SHOWN, count));
	printable_printf(stderr, "Run the same command again when they are finished.");
}

static int tell_redacted(struct redacting *redacting, struct outbox_error *err)
{
	const struct redact_key *work = &redacting->work;
	const bool dry = work->dry_run;
	char done[COUNT_TEXT_MAX], searched[COUNT_TEXT_MAX];
	struct cli *cli = redacting->cli;

	tell_unfinished(redacting);
	if (work->left)
		cli->exit = EXIT_REPORTED;
	if (redacting->signal) {
		cli->exit = EXIT_SIGNAL + redacting->signal;
		printable_printf(stderr, "interrupted: run the same command again to do the rest");
	}
	if (cli->json)
		return json_print(json_pack("{s:b, s:I, s:I, s:I, s:I, s:O, s:b}", "dry_run", dry,
					    "searched", (json_int_t)work->searched, "redacted",
					    (json_int_t)work->done, "before",
					    (json_int_t)work->before, "unfinished",
					    (json_int_t)work->left, "deliveries",
					    redacting->unfinished, "interrupted",
					    redacting->signal != 0),
				  err);
	printable_printf(stdout, "%s %s message%s (searched %s)%s",
			 dry ? "would redact" : "redacted", count_human(work->done, done),
			 work->done == 1 ? "" : "s", count_human(work->searched, searched),
			 dry ? ". Run again without --dry-run." : "");
	if (!work->done && !work->before && !work->left && !redacting->signal)
		puts("No message there has such a key: it may have been redacted before, be written\n"
		     "differently, or have been removed by retention.");
	puts("This does not reach what targets have received, archive files and backups.");
	return OUTBOX_OK;
}

/* One walk through the log. */
static int walk_log(struct redacting *redacting, bool dry_run, const char *what,
		    struct outbox_error *err)
{
	struct shown_work shown = { 0 };
	const struct values *given = redacting->given;
	int r;

	json_array_clear(redacting->unfinished);
	redacting->n_unfinished = 0;
	redacting->work = (struct redact_key){ .store = redacting->cli->store,
					       .key = given->key,
					       .key_like = given->key_like,
					       .actor = redacting->cli->actor,
					       .reason = given->reason,
					       .dry_run = dry_run,
					       .unfinished = note_unfinished,
					       .context = redacting };
	work_begin(&shown, what, 0);
	r = redact_key(&redacting->work, &shown.bulk, err);
	work_end(&shown);
	redacting->signal = shown.signal;
	return r ? outbox_wrap(err,
			       "after %lld messages that are redacted; run the same command again to "
			       "do the rest",
			       (long long)(dry_run ? 0 : redacting->work.done))
		 : OUTBOX_OK;
}

/* It cannot be undone: how many they are is counted for whoever is asked. */
static int confirm(struct redacting *redacting, struct outbox_error *err)
{
	char question[300], count[COUNT_TEXT_MAX];
	int r = walk_log(redacting, true, "searched", err);

	if (r || redacting->signal || !redacting->work.done)
		return r;
	snprintf(question, sizeof(question), "redact %s message%s for good",
		 count_human(redacting->work.done, count), redacting->work.done == 1 ? "" : "s");
	return confirm_yes(redacting->cli, false, question, err);
}

static int redact_many(struct cli *cli, const struct values *given, struct outbox_error *err)
{
	struct redacting redacting = { .cli = cli, .given = given, .unfinished = json_array() };
	bool look = given->dry_run || !given->yes;
	int r = cli_open(cli, OPEN_READY, err);

	if (r == OUTBOX_OK && !redacting.unfinished)
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (r == OUTBOX_OK && given->dry_run)
		r = walk_log(&redacting, true, "searched", err);
	else if (r == OUTBOX_OK && look)
		r = confirm(&redacting, err);
	if (r == OUTBOX_OK && !given->dry_run && (given->yes || redacting.work.done) &&
	    !redacting.signal)
		r = walk_log(&redacting, false, "searched", err);
	if (r == OUTBOX_OK)
		r = tell_redacted(&redacting, err);
	json_decref(redacting.unfinished);
	return r;
}

static int run_redact(struct cli *cli, void *values, struct outbox_error *err)
{
	const struct values *given = values;
	int chosen = (cli->n_words > 0) + (given->key != NULL) + (given->key_like != NULL);

	if (chosen != 1)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "which messages: give one of an ID, --key KEY and --key-like GLOB");
	if (given->reason[0] == '\0')
		return outbox_fail(err, OUTBOX_EINVAL, "--reason is empty; say why, for the audit");
	if ((given->key && !given->key[0]) || (given->key_like && !given->key_like[0]))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "the key is empty; no message has an empty key");
	if (cli->n_words && (given->dry_run || given->yes))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--dry-run and --yes are for --key and --key-like");
	return cli->n_words ? act_on_one(cli, values, err) : redact_many(cli, given, err);
}

const struct command cmd_cancel = {
	.name = "cancel",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_HARMFUL,
	.summary = "cancel a scheduled message before it is due",
	TAKES_WORDS("ID", 1, 1),
	TAKES_OPTIONS(cancel_options, struct values),
	.about = "Only a message that is due later (due_at) and was sent nowhere can be cancelled. Its deliveries are discarded, and targets that are registered later do not send it either. Applications cancel in their own transaction: outbox_cancel() on PostgreSQL, outbox_cancel_pg() and outbox_cancel_sqlite() in C.",
	.example = "outbox cancel reminder-42 --reason \"the order was paid\"",
	.exits = "0  cancelled, now or before\n3  no such message\n4  it is not scheduled, is due, being sent, or was sent",
	.run = act_on_one,
};

const struct command cmd_redact = {
	.name = "redact",
	.group = GROUP_REPAIR,
	.flags = COMMAND_STORE | COMMAND_ACTOR | COMMAND_HARMFUL,
	.summary = "remove the personal data from finished messages, for good",
	TAKES_WORDS("[ID]", 0, 1),
	TAKES_OPTIONS(redact_options, struct values),
	.about = "Payload, headers, subject and key are replaced; id, type and times stay. Every delivery must be delivered or discarded. With --key, the log is searched for all messages of the key; those that are not finished are listed with what to do, and left as they are. Run it again then, or after an interruption: what is redacted has another key. This does not reach what targets have received, archives or backups.",
	.example = "outbox redact 0198f3a2-7c11-7e02-9d53-2f0f5a2b81c4 --reason \"erasure 17\"\n"
		   "outbox redact --key customer-17 --reason \"erasure 17\" --dry-run",
	.exits =
		"0  redacted, now or before\n1  some messages of the key are not finished, and were left as they are\n3  no such message\n4  a delivery is not finished\n"
		"10 not confirmed: nothing was changed\n130  interrupted: run the same command again",
	.run = run_redact,
};
