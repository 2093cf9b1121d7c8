/* SPDX-License-Identifier: Apache-2.0 */
/* Health and metrics of stores, and of the relays of this process that work on them, from one look. */
#include "base/cleanup.h"
#include "base/sized.h"
#include "core/secrets.h"
#include "operate/admin.h"
#include "operate/metrics.h"
#include "operate/sample.h"
#include "relay/relay.h"

#include <string.h>

#define METRICS_MAX ((size_t)64 << 20)
#define SCRATCH_MAX ((size_t)64 << 20)

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

/* ---- one look ------------------------------------------------------------------------------ */

static int read_store(struct outbox_admin *admin, struct outbox_arena *arena,
		      struct health_source *source, struct outbox_error *err)
{
	int r = admin_enter(admin, NEED_READY, err);

	if (r)
		return r;
	source->name = outbox_arena_text(arena, admin->name ? admin->name : admin->info.name);
	return admin_leave(admin, once_read(admin->store, arena, source, err));
}

/* What the caller did wrong is an error; that a store does not answer is a finding. */
static int look_at(struct outbox_admin *admin, struct outbox_arena *arena,
		   struct health_source *ret_source, struct outbox_error *err)
{
	struct outbox_error own = OUTBOX_ERROR_INIT;
	int r = read_store(admin, arena, ret_source, &own);

	if (r == OUTBOX_EINVAL || r == OUTBOX_ECONFIG || r == OUTBOX_ENOMEM)
		return outbox_fail(err, r, "%s", own.message);
	hide_secrets_in(own.message, sizeof(own.message));
	if (!ret_source->name)
		ret_source->name = outbox_arena_text(arena, admin->name ? admin->name : "store");
	if (r)
		ret_source->trouble = outbox_arena_text(arena, own.message);
	if (!ret_source->name || (r && !ret_source->trouble))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

static int judge(const struct outbox_admin *admin, const struct health_source *source,
		 struct outbox_arena *arena, struct sample *ret_sample, struct outbox_error *err)
{
	const struct health_input input = { .wall = admin->clock->wall(admin->clock),
					    .limits = &admin->limits,
					    .sources = source,
					    .n_sources = 1 };

	return once_judge(&input, arena, ret_sample, err);
}

/* ---- health -------------------------------------------------------------------------------- */

int outbox_admin_health(struct outbox_admin *admin, struct outbox_arena *arena,
			struct outbox_health *ret_health, struct outbox_error *err)
{
	struct health_source source = { 0 };
	struct sample sample = { 0 };
	struct outbox_finding *findings;
	int r;

	if (!admin || !arena || !ret_health)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "admin, arena and ret_health must not be NULL");
	r = look_at(admin, arena, &source, err);
	if (r == OUTBOX_OK)
		r = judge(admin, &source, arena, &sample, err);
	if (r)
		return r;
	findings = outbox_arena_alloc(arena, (sample.n_findings + 1) * sizeof(*findings));
	if (!findings)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < sample.n_findings; i++) {
		const struct health_finding *from = &sample.findings[i];

		findings[i] = (struct outbox_finding){ .rule = from->rule,
						       .level = (int)from->level,
						       .target = from->target,
						       .since = from->since,
						       .text = from->text };
	}
	*ret_health = (struct outbox_health){ .level = (int)sample.level,
					      .count = sample.n_findings,
					      .findings = findings };
	return OUTBOX_OK;
}

/* ---- metrics ------------------------------------------------------------------------------- */

/* One sample of all of them, its lists with room for each. */
struct gathered {
	struct sample sample;
	struct sample_source *sources;
	struct daemon_source *relays;
};

static int gather_relay(const struct outbox_relay *relay, struct outbox_arena *arena,
			struct daemon_source *to, struct outbox_error *err)
{
	size_t count = relay ? relay_target_count(relay) : 0;
	struct target_metrics *targets = outbox_arena_alloc(arena, (count + 1) * sizeof(*targets));

	if (!targets)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		relay_target_metrics(relay, i, &targets[i]);
	to->state = relay && relay_running(relay) ? SOURCE_RUNNING : SOURCE_STOPPED;
	to->targets = targets;
	to->n_targets = count;
	return OUTBOX_OK;
}

static int add_findings(struct gathered *all, const struct sample *one, struct outbox_arena *arena,
			struct outbox_error *err)
{
	size_t count = all->sample.n_findings;
	struct health_finding *more =
		outbox_arena_alloc(arena, (count + one->n_findings + 1) * sizeof(*more));

	if (!more)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (count)
		memcpy(more, all->sample.findings, count * sizeof(*more));
	if (one->n_findings)
		memcpy(more + count, one->findings, one->n_findings * sizeof(*more));
	all->sample.findings = more;
	all->sample.n_findings += one->n_findings;
	if (one->level > all->sample.level)
		all->sample.level = one->level;
	all->sample.at = one->at;
	return OUTBOX_OK;
}

static int gather_one(const struct outbox_metrics_source *source, struct outbox_arena *arena,
		      struct gathered *all, struct outbox_error *err)
{
	size_t i = all->sample.n_sources;
	struct health_source seen = { 0 };
	struct sample one = { 0 };
	int r;

	if (!source->admin)
		return outbox_fail(err, OUTBOX_EINVAL, "sources: the admin of number %zu is NULL",
				   i + 1);
	r = look_at(source->admin, arena, &seen, err);
	if (r == OUTBOX_OK)
		r = judge(source->admin, &seen, arena, &one, err);
	if (r == OUTBOX_OK)
		r = add_findings(all, &one, arena, err);
	if (r == OUTBOX_OK)
		r = gather_relay(source->relay, arena, &all->relays[i], err);
	if (r)
		return r;
	all->relays[i].name = seen.name;
	all->sources[i] = (struct sample_source){ .source = &all->relays[i],
						  .stats = seen.stats,
						  .trouble = seen.trouble,
						  .looked = seen.stats ? one.at : 0,
						  .level = one.level };
	all->sample.n_sources++;
	return OUTBOX_OK;
}

static int gather(const struct outbox_metrics_source *sources, size_t n, struct outbox_arena *arena,
		  struct gathered *all, struct outbox_error *err)
{
	size_t stride = n && sources->struct_size ? sources->struct_size : sizeof(*sources);
	int r = OUTBOX_OK;

	all->sources = outbox_arena_alloc(arena, (n + 1) * sizeof(*all->sources));
	all->relays = outbox_arena_alloc(arena, (n + 1) * sizeof(*all->relays));
	if (!all->sources || !all->relays)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	all->sample.sources = all->sources;
	for (size_t i = 0; r == OUTBOX_OK && i < n; i++) {
		const char *at = (const char *)sources + i * stride;
		struct outbox_metrics_source source;

		sized_copy(&source, sizeof(source), at, stride);
		r = gather_one(&source, arena, all, err);
	}
	return r;
}

int outbox_metrics_text(const struct outbox_metrics_source *sources, size_t n_sources,
			struct outbox_arena *arena, const char **ret_text, struct outbox_error *err)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *scratch = NULL;
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(METRICS_MAX);
	struct metric_text text = { .out = &out };
	struct metric_sink sink = metric_text_sink(&text);
	struct gathered all = { 0 };
	int r;

	if ((!sources && n_sources) || !arena || !ret_text)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "sources, arena and ret_text must not be NULL");
	scratch = outbox_arena_new(SCRATCH_MAX);
	if (!scratch)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = gather(sources, n_sources, scratch, &all, err);
	if (r)
		return r;
	metrics_walk(&all.sample, &sink);
	*ret_text = out.failed ? NULL : outbox_arena_text(arena, buf_str(&out));
	return *ret_text ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}
