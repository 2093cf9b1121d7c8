/* SPDX-License-Identifier: Apache-2.0 */
/* What machines ask: is it alive, is it ready, is it well, and its numbers. All from memory. */
#include "http/api.h"
#include "telemetry/metrics_process.h"

#define ANSWER_MAX 16
#define INDEX_MAX ((size_t)16 << 10)
#define METRICS_MAX ((size_t)64 << 20) /* 64 sources x 64 targets need less */

/* One word: who has no token learns nothing else. */
static int answer_word(struct http_response *response, int status, const char *word)
{
	response->status = status;
	response->content_type = "text/plain; charset=utf-8";
	response->body.max = ANSWER_MAX;
	buf_text(&response->body, word);
	return OUTBOX_OK;
}

static int answer_probe(struct http_response *response, bool well)
{
	return well ? answer_word(response, 200, "ok\n") : answer_word(response, 503, "fail\n");
}

/* Every path with what it is for: nothing that the documentation does not say, so it needs no token. */
API_HANDLER(probe_index)
{
	const struct http_route *route;

	(void)request;
	response->content_type = "text/plain; charset=utf-8";
	response->body.max = INDEX_MAX;
	for (size_t i = 0; (route = http_route_at(i)); i++)
		buf_printf(&response->body, "%-4s %-28s %s\n", route->method, route->path,
			   route->summary);
	if (response->body.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

API_HANDLER(probe_live)
{
	(void)request;
	(void)err;
	return answer_probe(response, true);
}

API_HANDLER(probe_health)
{
	_cleanup_(sampler_releasep) const struct sample *sample = sampler_hold(request->sampler);

	(void)err;
	if (!sample || sample->starting)
		return answer_word(response, 503, "starting\n");
	return answer_probe(response, sample->level != LEVEL_UNHEALTHY);
}

/*
 * One database of several that is away is no reason to take the process out of service: the others go on, and
 * a rolling upgrade must not stand still. Lag is for /metrics and the alerts.
 */
static bool has_any_store(const struct sample *sample)
{
	for (size_t i = 0; i < sample->n_sources; i++)
		if (sample->sources[i].stats)
			return true;
	return false;
}

API_HANDLER(probe_ready)
{
	_cleanup_(sampler_releasep) const struct sample *sample = sampler_hold(request->sampler);

	(void)err;
	if (!sample || (sample->starting && !has_any_store(sample)))
		return answer_word(response, 503, "starting\n");
	return answer_probe(response,
			    sample && has_any_store(sample) && !daemon_draining(request->daemon));
}

API_HANDLER(probe_metrics)
{
	_cleanup_(sampler_releasep) const struct sample *sample = sampler_hold(request->sampler);

	if (!sample)
		return outbox_fail(err, OUTBOX_ECONN, "no store has been sampled yet; try again");
	response->content_type = METRICS_CONTENT_TYPE;
	response->body.max = METRICS_MAX;
	metrics_write(sample, &response->body);
	if (response->body.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}
