/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/relay_sources.h"

#include "base/buf.h"
#include "base/safe.h"
#include "base/text.h"
#include "base/url.h"
#include "cli/outages.h"
#include "cli/signals.h"
#include "daemon/journal.h"
#include "relay/metrics.h"

#include <stdio.h>
#include <string.h>

struct sources {
	struct outbox_relay *relays[LIST_MAX];
	struct outages outages[LIST_MAX];
	struct outbox_error failed[LIST_MAX];
	size_t count; /* relays that were made */
};

/* One line: where from, where to. All of a relay's words go to stderr, stdout may be a target. */
static void tell_start(const struct relay_source *source, const struct relay_setup *setup,
		       enum relay_mode mode)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(4096);
	char masked[300];

	url_mask(source->store, masked, sizeof(masked));
	buf_printf(&line, "%s ->", masked);
	for (size_t i = 0; i < setup->config.n_targets; i++) {
		const struct outbox_target_config *target = &setup->config.targets[i];

		url_mask(target->to, masked, sizeof(masked));
		buf_printf(&line, "%s %s (%s)", i ? "," : "", target->name, masked);
	}
	buf_printf(&line, "; %s", mode == RELAY_ONCE ? "what is due now" : "until idle");
	journal(EVENT_RELAY_START, ABOUT_SOURCE(source->name), "%s", buf_str(&line));
}

/* A database that is locked for long is no reason to give up: wait, say so once, obey signals. */
static int start_up(struct outbox_relay **ret_relay, const struct outbox_relay_config *config,
		    struct outages *outages, const sigset_t *signals, struct outbox_error *err)
{
	struct outbox_error busy = OUTBOX_ERROR_INIT;
	bool told = false;
	int r;

	while ((r = outbox_relay_new(ret_relay, config, &busy)) == OUTBOX_EBUSY) {
		if (!told)
			journal(EVENT_SOURCE_AWAY, ABOUT_SOURCE(outages->source), "%s", busy.message);
		told = true;
		if (stop_wait(signals, OUTBOX_SECONDS))
			break;
	}
	if (r)
		outbox_fail_native(err, r, busy.native, "%s", busy.message);
	return r;
}

static void add_counts(const struct outbox_relay *relay, struct outbox_relay_counts *sum)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;

	outbox_relay_counts(relay, &counts);
	relay_counts_add(sum, &counts);
}

static struct sources *sources_free(struct sources *sources)
{
	for (size_t i = 0; sources && i < sources->count; i++) {
		outbox_relay_free(sources->relays[i]);
		outages_deinit(&sources->outages[i]);
	}
	free(sources);
	return NULL;
}

DEFINE_CLEANUP(struct sources *, sources_free)

static int name_source(const struct relay_source *source, int r, struct outbox_error *err)
{
	return r && source->name ? outbox_wrap(err, "source \"%s\"", source->name) : r;
}

/* For the commands that the log suggests, as the daemon does it: daemon_store_words. */
static const char *store_words(const struct relay_setup *setup, const struct relay_source *source,
			       struct buf *out)
{
	char masked[300];

	url_mask(source->store, masked, sizeof(masked));
	buf_text(out, setup->file ? "--config " : "--store ");
	safe_shell_word(out, setup->file ? setup->file_name : masked);
	if (setup->file)
		buf_printf(out, " --source %s", source->name);
	return buf_str(out);
}

static int make(struct sources *sources, const struct relay_setup *setup, enum relay_mode mode,
		const sigset_t *signals, struct outbox_error *err)
{
	for (size_t i = 0; i < setup->n_sources; i++) {
		_cleanup_(buf_deinit) struct buf words = BUF_INIT(1000);
		struct outbox_relay_config config = setup->config;
		struct outages *outages = &sources->outages[i];
		int r;

		outages_init(outages, setup->sources[i].name);
		config.store = setup->sources[i].store;
		config.store_option = store_words(setup, &setup->sources[i], &words);
		if (setup->sources[i].targets) {
			config.targets = setup->sources[i].targets;
			config.n_targets = setup->sources[i].n_targets;
		}
		config.log = mode == RELAY_ONCE ? outages_log : journal_sink;
		config.log_context =
			mode == RELAY_ONCE ? (void *)outages : (void *)setup->sources[i].name;
		r = start_up(&sources->relays[i], &config, outages, signals, err);
		if (r) {
			outages_deinit(outages);
			return name_source(&setup->sources[i], r, err);
		}
		sources->count++;
	}
	return OUTBOX_OK;
}

/* The first one's failure is the command's; those of the others are said here. */
static int first_failure(const struct sources *sources, const struct relay_setup *setup,
			 struct outbox_error *err)
{
	int first = OUTBOX_OK;

	for (size_t i = 0; i < sources->count; i++) {
		const struct outbox_error *failed = &sources->failed[i];

		if (!failed->status)
			continue;
		if (first) {
			journal(EVENT_RELAY_FAILED, ABOUT_SOURCE(setup->sources[i].name), "%s",
				failed->message);
			continue;
		}
		first = outbox_fail_native(err, failed->status, failed->native, "%s",
					   failed->message);
		first = name_source(&setup->sources[i], first, err);
	}
	return first;
}

int relay_sources_run(const struct relay_setup *setup, enum relay_mode mode,
		      const sigset_t *signals, struct relay_end *end, struct outbox_error *err)
{
	_cleanup_(sources_freep) struct sources *sources = calloc(1, sizeof(*sources));
	struct relay_runs runs = { .mode = mode, .timeout = setup->shutdown_timeout };
	int r;

	if (!sources)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = make(sources, setup, mode, signals, err);
	if (r)
		return r;
	for (size_t i = 0; i < setup->n_sources; i++)
		tell_start(&setup->sources[i], setup, mode);
	runs.relays = sources->relays;
	runs.count = sources->count;
	runs.failed = sources->failed;
	r = relay_run(&runs, &end->signal, err);
	for (size_t i = 0; i < sources->count; i++) {
		outages_tell(&sources->outages[i],
			     sources->failed[i].status ? &sources->failed[i] : NULL);
		add_counts(sources->relays[i], &end->counts);
	}
	end->ran = true;
	return r ? r : first_failure(sources, setup, err);
}
