/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "memory_store/db.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

static void worker_remove(struct memory_target *target, size_t i)
{
	free(target->workers[i].owner);
	free(target->workers[i].outage);
	free(target->workers[i].place);
	memmove(&target->workers[i], &target->workers[i + 1],
		(target->n_workers - i - 1) * sizeof(struct memory_worker));
	target->n_workers--;
}

static void forget_dead(struct memory_target *target, const char *owner, bool and_owner,
			outbox_time now)
{
	for (size_t i = target->n_workers; i > 0; i--) {
		const struct memory_worker *worker = &target->workers[i - 1];

		if (worker->alive_until <= now || (and_owner && !strcmp(worker->owner, owner)))
			worker_remove(target, i - 1);
	}
}

/* Records that this worker lives and returns its rank by name. */
static size_t worker_alive(struct memory_target *target, const char *owner, outbox_time until)
{
	size_t i = 0;

	while (i < target->n_workers && strcmp(target->workers[i].owner, owner) < 0)
		i++;
	if (i == target->n_workers || strcmp(target->workers[i].owner, owner) != 0) {
		target->workers = memory_grow(target->workers, target->n_workers,
					      &target->cap_workers, sizeof(struct memory_worker));
		memmove(&target->workers[i + 1], &target->workers[i],
			(target->n_workers - i) * sizeof(struct memory_worker));
		target->workers[i] = (struct memory_worker){ .owner = memory_text(owner) };
		target->n_workers++;
	}
	target->workers[i].alive_until = until;
	return i;
}

static bool is_free(const struct memory_lane *lane, outbox_time now)
{
	return !lane->owner || lane->lease_until <= now;
}

static bool is_owner(const struct memory_lane *lane, const char *owner)
{
	return lane->owner && !strcmp(lane->owner, owner);
}

/* Takes free lanes up to the share: its own expired ones first, so that it keeps what it works on. */
static void take_free(struct memory_target *target, const char *owner, int *held, int share,
		      outbox_time now, outbox_time until)
{
	for (int own = 1; own >= 0; own--) {
		for (int i = 0; i < target->n_lanes && *held < share; i++) {
			struct memory_lane *lane = &target->lanes[i];

			if (!is_free(lane, now) || (own && !is_owner(lane, owner)))
				continue;
			lane->owner = owner;
			lane->lease_until = until;
			(*held)++;
		}
	}
}

/* Does a living worker that was here before send elsewhere? */
static void look_elsewhere(const struct memory_target *target,
			   const struct outbox_lease_request *request, struct outbox_lease *lease)
{
	for (size_t i = 0; i < target->n_workers && request->place && !request->leaving; i++) {
		const struct memory_worker *worker = &target->workers[i];

		if (lease->elsewhere[0] || !worker->place ||
		    !strcmp(worker->owner, request->owner) || !strcmp(worker->place, request->place))
			continue;
		store_lease_elsewhere(lease, worker->place, worker->owner);
	}
}

int memory_lease(struct memory_store *s, const struct outbox_lease_request *request,
		 struct outbox_lease *ret_lease, struct outbox_error *err)
{
	outbox_time now = memory_now(s), until = now + request->duration;
	struct outbox_lease lease = { 0 };
	struct memory_target *target;
	const char *owner;
	int held = 0, status;

	status = memory_target_get(s->db, request->target, &target, err);
	if (status)
		return status;
	owner = memory_intern(s->db, request->owner);
	lease.total = target->n_lanes;
	lease.open_since = target->open_since;
	lease.stale_route = request->route_version != target->version;
	forget_dead(target, owner, request->leaving || lease.stale_route, now);
	look_elsewhere(target, request, &lease);
	if (lease.elsewhere[0]) {
		forget_dead(target, owner, true, now);
		*ret_lease = lease;
		return OUTBOX_OK;
	}

	for (int i = 0; i < target->n_lanes; i++) {
		if (is_owner(&target->lanes[i], owner) && !is_free(&target->lanes[i], now)) {
			target->lanes[i].lease_until = until;
			held++;
		}
	}
	if (!request->leaving && !lease.stale_route) {
		int rank = (int)worker_alive(target, owner, until);
		int workers = (int)target->n_workers;

		memory_replace(&target->workers[rank].outage, request->outage);
		memory_replace(&target->workers[rank].place, request->place);
		target->workers[rank].outage_since = request->outage ? now - request->outage_age : 0;
		lease.share = target->n_lanes / workers + (rank < target->n_lanes % workers);
		take_free(target, owner, &held, lease.share, now, until);
	}
	for (int i = 0; i < target->n_lanes; i++) {
		if (is_owner(&target->lanes[i], owner) && !is_free(&target->lanes[i], now))
			lease.lanes[lease.count++] = i;
	}
	*ret_lease = lease;
	return OUTBOX_OK;
}

int memory_release(struct memory_store *s, const char *target_name, int lane_number,
		   const char *owner, struct outbox_error *err)
{
	struct memory_target *target;
	struct memory_lane *lane;
	int status = memory_lane_get(s->db, target_name, lane_number, &target, &lane, err);

	if (status || !is_owner(lane, owner))
		return status;
	lane->owner = NULL;
	lane->lease_until = 0;
	return OUTBOX_OK;
}
