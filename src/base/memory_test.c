/* SPDX-License-Identifier: Apache-2.0 */

/* Arena, buffer, base64: memory that is bounded and stays flat. */

#include "base/unit_test.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/random.h"

#include <outbox/arena.h>

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void arena_memory_is_zeroed_and_aligned(void **state)
{
	struct outbox_arena *arena = outbox_arena_new((size_t)8 << 20);
	size_t round, i, j;

	(void)state;
	assert_non_null(arena);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 2000; i++) {
			unsigned char *memory = outbox_arena_alloc(arena, i);

			assert_non_null(memory);
			assert_int_equal((uintptr_t)memory % alignof(max_align_t), 0);
			for (j = 0; j < i; j++)
				assert_int_equal(memory[j], 0);
			memset(memory, 0xaa, i);
		}
		outbox_arena_reset(arena);
	}
	assert_null(outbox_arena_free(arena));
	assert_null(outbox_arena_free(NULL));
}

static void arena_pieces_do_not_overlap(void **state)
{
	struct outbox_arena *arena = outbox_arena_new((size_t)64 << 20);
	struct random_state random;
	char *pieces[300];
	size_t sizes[300], i;
	int round;

	(void)state;
	random_init(&random, 1);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < ARRAY_SIZE(pieces); i++) {
			sizes[i] =
				(size_t)random_between(&random.base, 1, i % 50 == 0 ? 300000 : 3000);
			pieces[i] = outbox_arena_alloc(arena, sizes[i]);
			assert_non_null(pieces[i]);
			memset(pieces[i], (int)(i % 251), sizes[i]);
		}
		for (i = 0; i < ARRAY_SIZE(pieces); i++) {
			assert_int_equal((unsigned char)pieces[i][0], i % 251);
			assert_int_equal((unsigned char)pieces[i][sizes[i] - 1], i % 251);
		}
		outbox_arena_reset(arena);
	}
	outbox_arena_free(arena);
}

static void arena_keeps_its_maximum(void **state)
{
	struct outbox_arena *arena = outbox_arena_new(1000);
	size_t total = 0;

	(void)state;
	assert_non_null(outbox_arena_alloc(arena, 1000));
	assert_null(outbox_arena_alloc(arena, 64));
	outbox_arena_reset(arena);
	while (outbox_arena_alloc(arena, 16))
		total += 16;
	assert_true(total >= 1000 - 16 && total <= 1008);
	assert_null(outbox_arena_alloc(arena, SIZE_MAX));
	assert_null(outbox_arena_alloc(arena, SIZE_MAX - 8));
	assert_null(outbox_arena_copy(arena, "x", SIZE_MAX));
	outbox_arena_free(arena);
}

static void arena_copies_end_with_nul(void **state)
{
	struct outbox_arena *arena = outbox_arena_new(1000);
	char *copy;

	(void)state;
	copy = outbox_arena_copy(arena, "a\0b", 3);
	assert_memory_equal(copy, "a\0b\0", 4);
	assert_string_equal(outbox_arena_text(arena, "text"), "text");
	assert_string_equal(outbox_arena_copy(arena, "", 0), "");
	assert_null(outbox_arena_copy(arena, NULL, 0));
	assert_null(outbox_arena_text(arena, NULL));
	outbox_arena_free(arena);
}

/* A steady user gets the same memory again: the very same addresses, so nothing was allocated. */
static void arena_reset_keeps_blocks(void **state)
{
	struct outbox_arena *arena = outbox_arena_new((size_t)16 << 20);
	void *first[64], *again;
	size_t round, i;

	(void)state;
	for (round = 0; round < 5; round++) {
		for (i = 0; i < ARRAY_SIZE(first); i++) {
			again = outbox_arena_alloc(arena, i == 20 ? 200000 : 10000);
			assert_non_null(again);
			if (round > 0)
				assert_ptr_equal(again, first[i]);
			first[i] = again;
		}
		outbox_arena_reset(arena);
	}
	outbox_arena_free(arena);
}

#ifdef __SANITIZE_ADDRESS__
int __asan_address_is_poisoned(const volatile void *address);

/* A view that outlives its batch, or reads behind its end, is found by the sanitizer. */
static void arena_poisons_what_is_forgotten(void **state)
{
	struct outbox_arena *arena = outbox_arena_new(4096);
	char *memory = outbox_arena_alloc(arena, 24);

	(void)state;
	assert_false(__asan_address_is_poisoned(memory + 23));
	assert_true(__asan_address_is_poisoned(memory + 24));
	outbox_arena_reset(arena);
	assert_true(__asan_address_is_poisoned(memory));
	outbox_arena_free(arena);
}
#endif

static void buf_grows_to_its_maximum_and_no_further(void **state)
{
	_cleanup_(buf_deinit) struct buf buf = BUF_INIT(100);
	size_t i;

	(void)state;
	assert_null(buf.data);
	assert_string_equal(buf_str(&buf), "");
	buf_append(&buf, NULL, 0);
	assert_null(buf.data);
	for (i = 0; i < 100; i++)
		buf_char(&buf, 'x');
	assert_false(buf.failed);
	assert_int_equal(strlen(buf_str(&buf)), 100);
	buf_char(&buf, 'y');
	assert_true(buf.failed);
	assert_int_equal(buf.size, 100);
	buf_clear(&buf);
	buf_text(&buf, "still ");
	buf_printf(&buf, "%d", 42);
	assert_string_equal(buf_str(&buf), "still 42");
	assert_false(buf.failed);
	buf_printf(&buf, "%200d", 1);
	assert_true(buf.failed);
	buf_text(&buf, "x"); /* failed stays failed */
	assert_string_equal(buf_str(&buf), "still 42");
	assert_int_equal(buf.size, 8);
}

static int value_of(char c)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = strchr(alphabet, c);

	return c && at ? (int)(at - alphabet) : -1;
}

static size_t decode64(const char *text, size_t length, unsigned char *out)
{
	size_t i, j, n = 0;

	for (i = 0; i < length; i += 4) {
		uint32_t bits = 0;

		for (j = 0; j < 4; j++)
			bits = bits << 6 |
			       (text[i + j] == '=' ? 0 : (uint32_t)value_of(text[i + j]));
		out[n++] = (unsigned char)(bits >> 16);
		if (text[i + 2] != '=')
			out[n++] = (unsigned char)(bits >> 8);
		if (text[i + 3] != '=')
			out[n++] = (unsigned char)bits;
	}
	return n;
}

static void base64_comes_back(void **state)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT((size_t)1 << 20);
	unsigned char data[2000], back[2048];
	struct random_state random;
	size_t size, i;

	(void)state;
	random_init(&random, 9);
	for (i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)random.base.next(&random.base);
	for (size = 0; size <= sizeof(data); size++) {
		buf_clear(&out);
		base64_append(&out, data, size);
		assert_int_equal(out.size, (size + 2) / 3 * 4);
		for (i = 0; i < out.size; i++)
			assert_true(value_of(out.data[i]) >= 0 ||
				    (out.data[i] == '=' && i + 2 >= out.size));
		assert_int_equal(decode64(buf_str(&out), out.size, back), size);
		assert_memory_equal(back, data, size);
		assert_true(base64_decode(buf_str(&out), out.size, back, &i));
		assert_int_equal(i, size);
		assert_memory_equal(back, data, size);
	}
	buf_clear(&out);
	base64_append(&out, "foobar", 4);
	assert_string_equal(buf_str(&out), "Zm9vYg==");
	assert_false(base64_decode("Zm9", 3, back, &i));
	assert_false(base64_decode("Zm9v\n", 5, back, &i));
	assert_false(base64_decode("Zm=vYg==", 8, back, &i));
	assert_false(base64_decode("Zg==Zg==", 8, back, &i));
	assert_false(base64_decode("Zh==", 4, back, &i));
	assert_false(base64_decode("====", 4, back, &i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_memory_is_zeroed_and_aligned),
		cmocka_unit_test(arena_pieces_do_not_overlap),
		cmocka_unit_test(arena_keeps_its_maximum),
		cmocka_unit_test(arena_copies_end_with_nul),
		cmocka_unit_test(arena_reset_keeps_blocks),
#ifdef __SANITIZE_ADDRESS__
		cmocka_unit_test(arena_poisons_what_is_forgotten),
#endif
		cmocka_unit_test(buf_grows_to_its_maximum_and_no_further),
		cmocka_unit_test(base64_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
