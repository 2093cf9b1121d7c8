/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters in a configuration: which can be, and what is told about the others. */
#include "config/load_test.h"

#define LOOP "it leads back to this target; a dead letter must end somewhere"
#define OUTSIDE \
	"is external, and messages that fail here may not be meant for outsiders; name another target"

/* Targets as they stand in the list, one a line from line 5 on; everything that is told about them. */
static struct config *load(const char *targets, struct buf *told)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(40000);

	buf_printf(&text, "sources:\n  - name: shop\n    store: sqlite:app.db\ntargets:\n%s",
		   targets);
	return load_told((struct config_input){ .text = buf_str(&text) }, told);
}

struct row {
	const char *targets, *told;
};

static void expect(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		_cleanup_(buf_deinit) struct buf told = BUF_INIT(40000);
		struct config *config = load(rows[i].targets, &told);

		assert_string_equal(buf_str(&told), rows[i].told);
		assert_int_equal(config != NULL, !*rows[i].told);
		config_free(config);
	}
}

static void what_can_be(void **state)
{
	static const struct row rows[] = {
		{ "  - { name: a, to: 'null:', dead_letter: b }\n"
		  "  - { name: b, to: 'null:', match: { nothing: true } }\n",
		  "" },
		/* in either order, and as a chain */
		{ "  - { name: c, to: 'null:' }\n"
		  "  - { name: b, to: 'null:', dead_letter: c }\n"
		  "  - { name: a, to: 'null:', dead_letter: b }\n",
		  "" },
		/* one for many */
		{ "  - { name: a, to: 'null:', dead_letter: c }\n"
		  "  - { name: b, to: 'null:', dead_letter: c }\n"
		  "  - { name: c, to: 'null:' }\n",
		  "" },
		{ "  - { name: a, to: 'null:', dead_letter: b }\n"
		  "  - { name: b, to: 'null:', external: false }\n",
		  "" },
		/* what is external may have one */
		{ "  - { name: a, to: 'null:', external: true, dead_letter: b }\n"
		  "  - { name: b, to: 'null:' }\n",
		  "" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

#define AT(line, column, index, name) \
	"outbox.yaml:" line ":" column ": targets[" index "] \"" name "\", dead_letter: "

/* As a command's options make one. */
static int make_tree(const void *context, struct outbox_arena *arena, struct node **ret_root,
		     struct outbox_error *err)
{
	_cleanup_(cleanup_free) struct problems *problems = calloc(1, sizeof(*problems));

	return yaml_read("options", context, strlen(context), arena, problems, ret_root, err);
}

static void unknown_ones(void **state)
{
	static const char other[] = "  - { name: a, to: 'null:', dead_letter: elsewhere }\n";
	static const struct row rows[] = {
		{ other, AT("5", "42", "0",
			    "a") "\"elsewhere\" is not the name of a target; add a target of "
				 "that name, with match: { nothing: true }\n" },
		{ "  - { name: a, to: 'null:', dead_letter: parkd }\n"
		  "  - { name: parked, to: 'null:' }\n",
		  AT("5", "42", "0",
		     "a") "\"parkd\" is not the name of a target; did you mean parked?\n" },
		/* what has no name is not offered */
		{ "  - { name: a, to: 'null:', dead_letter: b }\n"
		  "  - { to: 'null:' }\n",
		  AT("5", "42", "0",
		     "a") "\"b\" is not the name of a target; add a target of that name, with match: { nothing: true }\n"
			  "outbox.yaml:6:5: targets[1]: name is missing: the target's name; the store "
			  "keeps its state under it, like events\n" },
	};
	_cleanup_(buf_deinit) struct buf told = BUF_INIT(40000), text = BUF_INIT(4000);
	struct config *config;

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
	/* options cannot say more of another relay's target than its name: the store knows it */
	buf_printf(&text, "sources:\n  - name: shop\n    store: sqlite:app.db\ntargets:\n%s", other);
	config = load_told((struct config_input){ .text = "",
						  .make_tree = make_tree,
						  .context = buf_str(&text) },
			   &told);
	assert_string_equal(buf_str(&told), "");
	config_free(config);
}

static void loops(void **state)
{
	static const struct row rows[] = {
		{ "  - { name: a, to: 'null:', dead_letter: a }\n",
		  AT("5", "42", "0", "a") LOOP "\n" },
		{ "  - { name: a, to: 'null:', dead_letter: b }\n"
		  "  - { name: b, to: 'null:', dead_letter: a }\n",
		  AT("5", "42", "0", "a") LOOP "\n" AT("6", "42", "1", "b") LOOP "\n" },
		/* a is not in the loop that it leads to: only those who are can mend it */
		{ "  - { name: a, to: 'null:', dead_letter: b }\n"
		  "  - { name: b, to: 'null:', dead_letter: c }\n"
		  "  - { name: c, to: 'null:', dead_letter: b }\n",
		  AT("6", "42", "1", "b") LOOP "\n" AT("7", "42", "2", "c") LOOP "\n" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void outside(void **state)
{
	static const struct row rows[] = {
		{ "  - { name: a, to: 'null:', dead_letter: b }\n"
		  "  - { name: b, to: 'null:', external: true }\n",
		  AT("5", "42", "0", "a") "\"b\" " OUTSIDE "\n" },
		{ "  - { name: a, to: 'null:', dead_letter: b }\n"
		  "  - { name: b, to: 'null:', external: \"true\" }\n",
		  AT("5", "42", "0", "a") "\"b\" " OUTSIDE "\n" },
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

/* A loop of as many as there can be is found, too. */
static void a_long_loop(void **state)
{
	enum { MANY = 64 };
	_cleanup_(buf_deinit) struct buf targets = BUF_INIT(40000), told = BUF_INIT(40000);

	(void)state;
	for (int i = 0; i < MANY; i++)
		buf_printf(&targets, "  - { name: t%d, to: 'null:', dead_letter: t%d }\n", i,
			   (i + 1) % MANY);
	assert_null(load(buf_str(&targets), &told));
	assert_non_null(strstr(buf_str(&told), "targets[0] \"t0\", dead_letter: " LOOP));
}

static void a_name_is_wanted(void **state)
{
	_cleanup_(buf_deinit) struct buf told = BUF_INIT(40000);

	(void)state;
	assert_null(load("  - { name: a, to: 'null:', dead_letter: 'no such name!' }\n", &told));
	assert_non_null(strstr(buf_str(&told), "dead_letter: "));
}

static void it_gets_to_the_relay(void **state)
{
	_cleanup_(buf_deinit) struct buf told = BUF_INIT(40000);
	const struct config_target *target;
	struct config *config;

	(void)state;
	config = load("  - { name: a, to: 'null:', dead_letter: b }\n"
		      "  - { name: b, to: 'null:', match: { nothing: true } }\n",
		      &told);
	assert_non_null(config);
	target = config->targets.items;
	assert_string_equal(target[0].dead_letter, "b");
	assert_null(target[1].dead_letter);
	assert_false(target[0].match.nothing);
	assert_true(target[1].match.nothing);
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_can_be),
		cmocka_unit_test(unknown_ones),
		cmocka_unit_test(loops),
		cmocka_unit_test(outside),
		cmocka_unit_test(a_long_loop),
		cmocka_unit_test(a_name_is_wanted),
		cmocka_unit_test(it_gets_to_the_relay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
