/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looking into a store with any filter and any cursor. The SQLite store and the memory store, the
 * contract's reference, hold the same messages in the same states and must answer the same; the rows
 * are in order and match the filter; the pages of a list put together are the list.
 */

#include "base/cleanup.h"
#include "base/text.h"
#include "fuzz.h"
#include "fuzz_stores.h"
#include "store/store.h"

#include <string.h>

#define IDS_MAX 8

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check_same(const struct outbox_page *a, const struct outbox_page *b)
{
	CHECK(a->count == b->count && same_text(a->cursor, b->cursor));
	for (size_t i = 0; i < a->count; i++) {
		const struct outbox_delivery *x = &a->rows[i], *y = &b->rows[i];

		CHECK(x->seq == y->seq && x->state == y->state && x->why == y->why);
		CHECK(x->attempts == y->attempts && x->created_at == y->created_at);
		CHECK(same_text(x->target, y->target) && same_text(x->id, y->id));
		CHECK(same_text(x->type, y->type) && same_text(x->key, y->key));
		CHECK(same_text(x->error, y->error) && same_text(x->reason, y->reason));
	}
}

static void check_page(const struct outbox_page *page, const struct outbox_filter *f)
{
	CHECK(page->count <= (f->limit ? f->limit : 100));
	for (size_t i = 0; i < page->count; i++) {
		const struct outbox_delivery *d = &page->rows[i];
		bool named = !f->n_ids;

		for (size_t k = 0; k < f->n_ids; k++)
			named = named || strcmp(f->ids[k], d->id) == 0;
		CHECK(named);
		CHECK(!f->target || strcmp(f->target, d->target) == 0);
		CHECK(!f->type || glob_match(f->type, d->type));
		CHECK(!f->key || same_text(f->key, d->key));
		CHECK(!f->state || f->state == d->state);
		CHECK(!f->why || (f->why == d->why && d->state == OUTBOX_PENDING));
		CHECK(!f->changed_before || d->last_status_at <= f->changed_before);
		if (i > 0)
			CHECK(d[-1].seq < d->seq ||
			      (d[-1].seq == d->seq && strcmp(d[-1].target, d->target) < 0));
	}
}

/* From this page to the last one, and all of it at once. */
static void check_pages(struct fuzz_store *s, struct outbox_filter f)
{
	struct outbox_page all, page;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	size_t at = 0, limit = f.limit;

	f.limit = 1000;
	CHECK(store_list(s->store, &f, s->arena, &all, &err) == OUTBOX_OK);
	CHECK(!all.cursor);
	f.limit = limit;
	do {
		CHECK(store_list(s->store, &f, s->arena, &page, &err) == OUTBOX_OK);
		CHECK(page.count > 0 || (all.count == 0 && !page.cursor));
		for (size_t i = 0; i < page.count; i++, at++) {
			CHECK(at < all.count && all.rows[at].seq == page.rows[i].seq);
			CHECK(strcmp(all.rows[at].target, page.rows[i].target) == 0);
		}
		f.cursor = page.cursor;
	} while (f.cursor);
	CHECK(at == all.count);
}

static void check_list(struct fuzz_store stores[2], const struct outbox_filter *filter)
{
	struct outbox_page pages[2] = { 0 };
	int status[2];

	for (int i = 0; i < 2; i++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct outbox_store *store = stores[i].store;

		status[i] = store_list(store, filter, stores[i].arena, &pages[i], &err);
		check_error(status[i], &err);
		CHECK(status[i] == OUTBOX_OK || status[i] == OUTBOX_EINVAL ||
		      (status[i] == OUTBOX_ENOTFOUND && filter->target));
		if (status[i] == OUTBOX_OK) {
			check_page(&pages[i], filter);
			check_pages(&stores[i], *filter);
		}
	}
	CHECK(status[0] == status[1]);
	if (status[0] == OUTBOX_OK)
		check_same(&pages[0], &pages[1]);
}

static void check_others(struct fuzz_store stores[2], const char *text, size_t limit)
{
	struct outbox_error err[2] = { OUTBOX_ERROR_INIT, OUTBOX_ERROR_INIT };
	struct outbox_claimed message[2];
	int status[2];

	for (int i = 0; i < 2; i++) {
		struct outbox_error tail_err = OUTBOX_ERROR_INIT;
		struct outbox_store *store = stores[i].store;
		struct outbox_page page;
		int r = store_tail(store, text, limit, stores[i].arena, &page, &tail_err);

		check_error(r, &tail_err);
		CHECK(r == OUTBOX_EINVAL || (r == OUTBOX_OK && page.cursor));
		/* A tail's own cursor is always good for going on. */
		if (r == OUTBOX_OK)
			CHECK(store_tail(store, page.cursor, limit, stores[i].arena, &page,
					 &tail_err) == OUTBOX_OK);
		status[i] = store_get(store, text, stores[i].arena, &message[i], &err[i]);
		check_error(status[i], &err[i]);
	}
	CHECK(status[0] == status[1]);
	CHECK(status[0] == OUTBOX_OK || status[0] == OUTBOX_ENOTFOUND);
	if (status[0] == OUTBOX_OK)
		CHECK(message[0].seq == message[1].seq && same_text(message[0].message.id, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_store stores[2];
	struct input in = { .data = data, .size = size };
	struct outbox_filter filter = { .struct_size = sizeof(filter) };
	const char *ids[IDS_MAX];
	unsigned mask = input_byte(&in);

	fuzz_stores(stores);
	filter.ids = ids;
	filter.n_ids = mask >> 5 > IDS_MAX - 4 ? mask >> 5 : 0;
	filter.state = (int8_t)input_byte(&in);
	filter.why = (int8_t)input_byte(&in);
	filter.limit = input_byte(&in);
	filter.changed_before = mask >> 4 & 1 ? FUZZ_START + (int8_t)input_byte(&in) : 0;
	filter.target = input_text_if(&in, mask, 0);
	filter.type = input_text_if(&in, mask, 1);
	filter.key = input_text_if(&in, mask, 2);
	filter.cursor = input_text_if(&in, mask, 3);
	for (size_t i = 0; i < filter.n_ids; i++)
		ids[i] = input_text(&in);
	check_list(stores, &filter);
	check_others(stores, filter.cursor ? filter.cursor : input_text(&in), filter.limit);
	for (int i = 0; i < 2; i++)
		outbox_arena_reset(stores[i].arena);
	input_end(&in);
	return 0;
}
