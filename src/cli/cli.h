/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

/*
 * What every command shares. A command is one file with one `const struct command`; main.c lists them,
 * parses the options by the command's table, calls run() and turns its status into an exit code.
 */

#include "base/cleanup.h"
#include "base/random.h"
#include "cli/exits.h"
#include "cli/options.h"

#include <outbox/outbox.h>

#include <stdlib.h>

struct cli;
struct config;
struct source_url;

enum command_group { GROUP_SETUP = 1, GROUP_WORK, GROUP_SEE, GROUP_REPAIR, GROUP_HELP };

#define COMMAND_URL 1u      /* takes --store */
#define COMMAND_ACTOR 2u    /* takes --actor: it leaves an audit row */
#define COMMAND_FILE 4u     /* takes --config and --source, which name the store as well */
#define COMMAND_MANY 8u     /* works on all sources of the file when none is named */
#define COMMAND_HARMFUL 16u /* what it takes away is gone: never suggested for a typing mistake */
#define COMMAND_STORE (COMMAND_URL | COMMAND_FILE)

struct command {
	const char *name;  /* "publish", "target drop" */
	const char *alias; /* a former name that still works; NULL */
	enum command_group group;
	unsigned flags;      /* COMMAND_* */
	const char *summary; /* one line for `outbox help` */
	const char *words;   /* what follows besides options, "ID..."; NULL: nothing */
	size_t min_words, max_words;
	const struct field *options;
	size_t n_options;
	size_t values_size;  /* of the struct that options are written to */
	const char *about;   /* what else to know; NULL */
	const char *example; /* lines to try */
	const char *exits;   /* what 0 and 1 mean here; NULL: nothing special */
	/* Returns an enum outbox_status; err says what went wrong. cli->exit overrules. */
	int (*run)(struct cli *cli, void *values, struct outbox_error *err);
};

/* How a command says what it takes. */
#define TAKES_WORDS(words_, min_, max_) .words = (words_), .min_words = (min_), .max_words = (max_)
#define TAKES_OPTIONS(options_, values_) \
	.options = (options_), .n_options = ARRAY_SIZE(options_), .values_size = sizeof(values_)

struct cli {
	const struct command *command;
	const char *store_url; /* --store, a source's of --config, OUTBOX_STORE, or NULL */
	char *store_owned;     /* what store_url points to, when it was put together here */
	const char *config_file, *source; /* --config, --source; sources.c */
	struct config *config;
	const struct source_url *sources; /* chosen from the file; none: the store was named */
	size_t n_sources;
	/* for commands that are suggested: " --store URL" when it was given so, else "" */
	char store_option[400];
	char relay_option[450]; /* the same for outbox relay, which also needs targets */
	const char *actor;
	bool json;
	const char *const *words;
	size_t n_words;
	bool colour;  /* on stdout */
	size_t width; /* columns of stdout; UNCUT where nothing has to fit */
	int exit;     /* not 0: the exit code, whatever the status is */
	struct outbox_clock *clock;
	struct random_state random;
	struct outbox_arena *arena;
	struct outbox_store *store;
	struct outbox_store_info info;
	char actor_text[200];
};

extern const struct command cmd_amend, cmd_archive, cmd_audit, cmd_cancel, cmd_completion,
	cmd_config_check, cmd_config_reference, cmd_config_schema, cmd_config_show, cmd_defer,
	cmd_discard, cmd_doctor, cmd_drop, cmd_help, cmd_inbox_count, cmd_inbox_list,
	cmd_inbox_prune, cmd_init, cmd_keys, cmd_list, cmd_pause, cmd_policy_list, cmd_policy_show,
	cmd_publish, cmd_purge, cmd_realign, cmd_redact, cmd_relay, cmd_replay, cmd_requeue,
	cmd_resume, cmd_show, cmd_sql, cmd_status, cmd_alerts, cmd_tail, cmd_target_drop,
	cmd_target_list, cmd_truncate, cmd_upgrade, cmd_version;

/* The i-th command; NULL behind the last. */
const struct command *command_at(size_t i);

/* ---- session.c ----------------------------------------------------------------------------- */

enum open_mode {
	OPEN_READY = 0, /* the schema must be there and of a version this program works with */
	OPEN_ANY,       /* the database must be there, its schema may be missing */
	OPEN_CREATE     /* make the database when it is missing */
};

/* What a command needs that has no store: actor, clock, randomness, arena. */
int cli_begin(struct cli *cli, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The same, and open --store into cli->store and read cli->info; fills cli->actor too. */
int cli_open(struct cli *cli, enum open_mode mode, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Close the store; another one may be opened. */
void cli_close(struct cli *cli);
/* The end: frees what else was made to find the store. */
void cli_done(struct cli *cli);

/*
 * The same (OPEN_READY), and the state of all targets, read into cli->arena. ENOTFOUND with the list of
 * targets unless there is one of this name; name NULL: any.
 */
int cli_open_target(struct cli *cli, const char *name, struct outbox_stats *ret_stats,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/* An option, into the member of a struct. The others are for a command's own struct values. */
#define OPTION_OF(type_, name_, kind_, field_, argument_, help_)                     \
	{                                                                            \
		.name = (name_), .type = (kind_), .offset = offsetof(type_, field_), \
		.argument = (argument_), .help = (help_)                             \
	}
#define OPTION(name_, kind_, field_, argument_, help_) \
	OPTION_OF(struct values, name_, kind_, field_, argument_, help_)
#define OPTION_REQUIRED(name_, kind_, field_, argument_, help_)                              \
	{                                                                                    \
		.name = (name_), .type = (kind_), .offset = offsetof(struct values, field_), \
		.argument = (argument_), .help = (help_), .flags = FIELD_REQUIRED            \
	}
#define OPTION_WORD(name_, field_, argument_, words_, help_)                                    \
	{                                                                                       \
		.name = (name_), .type = FIELD_WORD, .offset = offsetof(struct values, field_), \
		.argument = (argument_), .words = (words_), .help = (help_)                     \
	}
#define OPTION_RANGE(name_, kind_, field_, min_, max_, help_)                                \
	{                                                                                    \
		.name = (name_), .type = (kind_), .offset = offsetof(struct values, field_), \
		.argument = "N", .help = (help_), .min = (min_), .max = (max_)               \
	}

/* Options that several commands have; the struct has a member of the name. */
#define OPTION_REASON OPTION("reason", FIELD_TEXT, reason, "TEXT", "why, for the audit")
#define OPTION_REASON_REQUIRED \
	OPTION_REQUIRED("reason", FIELD_TEXT, reason, "TEXT", "why, for the audit")
#define OPTION_YES                           \
	OPTION("yes", FIELD_BOOL, yes, NULL, \
	       "do not ask for confirmation; required without a terminal")

#endif
