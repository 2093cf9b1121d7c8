/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and their file, wrong tokens by address, places for connections. */
#include "base/unit_test.h"
#include "http/access_tokens.h"
#include "http/auth_limit.h"
#include "http/connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOOD "0123456789012345678901234567890123456789abc"
#define OTHER "0123456789012345678901234567890123456789abd"

static char folder[] = "/tmp/outbox-access-XXXXXX";

static void tokens_are_told_apart(void **state)
{
	_cleanup_(access_tokens_freep) struct access_tokens *tokens = NULL;
	const struct access_token *found;

	(void)state;
	assert_ok(access_tokens_parse("# a comment\n\nann operate " GOOD "\r\n"
				      "bob\tread " OTHER " 2030-01-01T00:00:00Z\n",
				      "f", &tokens, err));
	found = access_tokens_check(tokens, GOOD, 0);
	assert_non_null(found);
	assert_string_equal(found->name, "ann");
	assert_int_equal(found->role, ROLE_OPERATE);
	found = access_tokens_check(tokens, OTHER, 1893455999 * OUTBOX_SECONDS);
	assert_non_null(found);
	assert_int_equal(found->role, ROLE_READ);
	/* at its end it is over */
	assert_null(access_tokens_check(tokens, OTHER, 1893456000 * OUTBOX_SECONDS));
	assert_null(access_tokens_check(tokens, "", 0));
	assert_null(access_tokens_check(tokens, GOOD "x", 0));
	assert_null(access_tokens_check(tokens, "0123456789012345678901234567890123456789abe", 0));
}

static void a_digest_stands_for_its_token(void **state)
{
	/* printf abc | sha256sum, the standard's own example: short, which a digest cannot show */
	static const char text[] =
		"ann read sha256:"
		"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	_cleanup_(access_tokens_freep) struct access_tokens *tokens = NULL;

	(void)state;
	assert_ok(access_tokens_parse(text, "f", &tokens, err));
	assert_non_null(access_tokens_check(tokens, "abc", 0));
	assert_null(access_tokens_check(tokens, "abd", 0));
}

static void wrong_lines_are_told_without_the_token(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "", "has no token" },
		{ "# nothing\n", "has no token" },
		{ "ann operate\n", "f:1: a line must be NAME ROLE TOKEN [EXPIRES]" },
		{ GOOD "\n", "f:1: a line must be" },
		{ "\nann admin " GOOD "\n", "f:2: the role must be read or operate" },
		{ "ann read short\n", "too short to be safe" },
		{ "ann read " GOOD "\"\n", "a character that is not allowed" },
		{ "ann read " GOOD " tomorrow\n", "the expiry must be a time like" },
		{ "ann read " GOOD " +5m\n", "the expiry must be a time like" },
		{ "ann read " GOOD " 2030-01-01T00:00:00Z x\n", "a line must be" },
		{ "a/b read " GOOD "\n", "the name must be 1 to 64 letters" },
		{ "ann read " GOOD "\nann read " OTHER "\n", "f:2: another line has this name" },
		{ "ann read sha256:12\n", "64 hexadecimal digits" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct access_tokens *tokens = NULL;

		assert_int_equal(access_tokens_parse(rows[i].text, "f", &tokens, &err),
				 OUTBOX_ECONFIG);
		if (!strstr(err.message, rows[i].says))
			fail_msg("\"%s\" is not in: %s", rows[i].says, err.message);
		assert_null(strstr(err.message, "0123456789"));
		assert_null(tokens);
	}
}

static const char *file_in(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void the_file_is_made_once(void **state)
{
	struct access_tokens *tokens = NULL;
	char first[1000] = "", second[1000] = "";
	bool made = false;
	struct stat file;
	int fd;

	(void)state;
	assert_ok(access_tokens_open(file_in("deep/down/tokens"), &tokens, &made, err));
	assert_true(made);
	tokens = access_tokens_free(tokens);
	assert_int_equal(stat(file_in("deep/down/tokens"), &file), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
	assert_int_equal(stat(file_in("deep/down"), &file), 0);
	assert_int_equal(file.st_mode & 07777, 0700);
	fd = open(file_in("deep/down/tokens"), O_RDONLY);
	assert_true(read(fd, first, sizeof(first) - 1) > 100);
	assert_ok(access_tokens_open(file_in("deep/down/tokens"), &tokens, &made, err));
	assert_false(made);
	tokens = access_tokens_free(tokens);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_true(read(fd, second, sizeof(second) - 1) > 100);
	close(fd);
	assert_string_equal(first, second);
	assert_int_equal(unlink(file_in("deep/down/tokens")), 0);
	assert_ok(access_tokens_open(file_in("deep/down/tokens"), &tokens, &made, err));
	tokens = access_tokens_free(tokens);
	fd = open(file_in("deep/down/tokens"), O_RDONLY);
	memset(second, 0, sizeof(second));
	assert_true(read(fd, second, sizeof(second) - 1) > 100);
	close(fd);
	assert_string_not_equal(first, second);
}

static void refuse_file(const char *name, const char *says)
{
	struct access_tokens *tokens = NULL;
	bool made = false;

	assert_fails(access_tokens_open(file_in(name), &tokens, &made, err), OUTBOX_ECONFIG, says);
	assert_null(tokens);
}

static void files_that_others_reach_are_refused(void **state)
{
	struct access_tokens *tokens = NULL;
	bool made = false;

	(void)state;
	assert_ok(access_tokens_open(file_in("t"), &tokens, &made, err));
	access_tokens_free(tokens);
	assert_int_equal(chmod(file_in("t"), 0640), 0);
	refuse_file("t", "chmod 600");
	assert_int_equal(chmod(file_in("t"), 0604), 0);
	refuse_file("t", "chmod 600");
	assert_int_equal(chmod(file_in("t"), 0600), 0);
	assert_int_equal(symlink("t", file_in("link")), 0);
	refuse_file("link", "is a symbolic link");
	assert_int_equal(symlink("nowhere", file_in("dangling")), 0);
	refuse_file("dangling", "is a symbolic link");
	assert_int_equal(mkfifo(file_in("fifo"), 0600), 0);
	refuse_file("fifo", "is not a file");
	assert_int_equal(mkdir(file_in("open"), 0700), 0);
	assert_int_equal(chmod(file_in("open"), 0770), 0);
	refuse_file("open/t", "chmod go-w");
	assert_int_equal(access(file_in("open/t"), F_OK), -1);
	if (geteuid() == 0) {
		assert_int_equal(chown(file_in("t"), 12345, 12345), 0);
		refuse_file("t", "belongs to another user");
		assert_int_equal(mkdir(file_in("foreign"), 0700), 0);
		assert_int_equal(chown(file_in("foreign"), 12345, 12345), 0);
		refuse_file("foreign/t", "belongs to another user");
	}
}

static void wrong_tokens_are_counted_by_address(void **state)
{
	const unsigned char here[ADDRESS_KEY] = { 4, 127 }, there[ADDRESS_KEY] = { 4, 10 };
	outbox_time now = 5 * OUTBOX_SECONDS;
	struct auth_limit auth_limit = { .items = { { .count = 0 } } };
	struct auth_verdict verdict;

	(void)state;
	for (int i = 0; i < FAILURES_PER_MINUTE; i++) {
		verdict = auth_limit_note(&auth_limit, here, now);
		assert_false(verdict.too_many);
		assert_int_equal(verdict.tell, i == 0);
	}
	verdict = auth_limit_note(&auth_limit, here, now + 59 * OUTBOX_SECONDS);
	assert_true(verdict.too_many);
	assert_false(verdict.tell);
	verdict = auth_limit_note(&auth_limit, there, now);
	assert_false(verdict.too_many);
	assert_true(verdict.tell);
	/* the next minute begins with a line that speaks for all that were not told */
	verdict = auth_limit_note(&auth_limit, here, now + OUTBOX_MINUTES);
	assert_false(verdict.too_many);
	assert_true(verdict.tell);
	assert_int_equal(verdict.untold, FAILURES_PER_MINUTE);
	/* many addresses do not grow it, nor forget the newest */
	for (unsigned i = 0; i < 1000; i++) {
		unsigned char key[ADDRESS_KEY] = { 4, 1, (unsigned char)(i >> 8), (unsigned char)i };

		auth_limit_note(&auth_limit, key, now + 2 * OUTBOX_MINUTES + i);
	}
}

static void many_addresses_do_not_fill_the_log(void **state)
{
	struct auth_limit auth_limit = { .items = { { .count = 0 } } };
	outbox_time now = 5 * OUTBOX_SECONDS;
	struct auth_verdict verdict;
	int lines = 0, told = 0;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		unsigned char key[ADDRESS_KEY] = { 4, 1, (unsigned char)(i >> 8), (unsigned char)i };

		/* three minutes and a bit, so that the last line speaks for all before it */
		verdict = auth_limit_note(&auth_limit, key,
					  now + (i < 2999 ? (outbox_time)i * 60 * OUTBOX_MILLISECONDS
							  : 5 * OUTBOX_MINUTES));
		lines += verdict.tell;
		told += verdict.tell ? 1 + verdict.untold + verdict.elsewhere : 0;
	}
	assert_int_equal(lines, 3 * FAILURES_LINES + 1);
	/* those that still have a place of their own are told with it */
	assert_in_range(told, 3000 - FAILURES_ADDRESSES, 3000);
}

static struct sockaddr_in address_of(unsigned n)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = htonl(n);
	return in;
}

struct pair {
	int ours, theirs;
};

static struct connection *join(struct connections *connections, struct pair *pair, unsigned n,
			       outbox_time now)
{
	struct sockaddr_in in = address_of(n);
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	*pair = (struct pair){ fds[0], fds[1] };
	return connections_add(connections, fds[0], (struct sockaddr *)&in, now);
}

/* Was its other side shut down? */
static bool is_over(const struct pair *pair)
{
	char byte;

	return recv(pair->theirs, &byte, 1, MSG_DONTWAIT) == 0;
}

static void close_pairs(struct pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		close(pairs[i].ours);
		close(pairs[i].theirs);
	}
}

static void one_address_crowds_out_itself(void **state)
{
	struct connections connections;
	struct connection *places[CONNECTIONS_PER_ADDRESS + 1], *other;
	struct pair pairs[CONNECTIONS_PER_ADDRESS + 2];

	(void)state;
	connections_init(&connections);
	other = join(&connections, &pairs[CONNECTIONS_PER_ADDRESS + 1], 7, 1);
	assert_non_null(other);
	for (unsigned i = 0; i < CONNECTIONS_PER_ADDRESS; i++)
		assert_non_null(places[i] = join(&connections, &pairs[i], 9, 10 + i));
	/* the slowest goes first, whatever it is slow in; those that wait for us are left alone */
	connection_enter(places[0], PHASE_WORKING, 3);
	connection_enter(places[1], PHASE_STREAM, 4);
	connection_enter(places[5], PHASE_IDLE, 200);
	connection_enter(places[6], PHASE_SENDING, 5);
	connection_enter(places[7], PHASE_HEADERS, 6);
	assert_non_null(join(&connections, &pairs[CONNECTIONS_PER_ADDRESS], 9, 300));
	for (unsigned i = 0; i < CONNECTIONS_PER_ADDRESS; i++)
		assert_int_equal(is_over(&pairs[i]), i == 6);
	assert_false(other->dropped);
	close_pairs(pairs, CONNECTIONS_PER_ADDRESS + 2);
}

static void places_are_bounded(void **state)
{
	struct pair pairs[CONNECTIONS_MAX + 40];
	struct connections connections;
	size_t joined = 0, over = 0;

	(void)state;
	connections_init(&connections);
	for (unsigned i = 0; i < CONNECTIONS_MAX + 40; i++)
		joined += join(&connections, &pairs[i], 100 + i, 10 + i) != NULL;
	assert_int_equal(joined, CONNECTIONS_MAX);
	assert_int_equal(connections.count, CONNECTIONS_MAX);
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		over += is_over(&pairs[i]);
	/* the oldest were told to go when the last places were taken */
	assert_int_equal(over, 8);
	assert_true(is_over(&pairs[0]) && !is_over(&pairs[CONNECTIONS_MAX - 1]));
	close_pairs(pairs, CONNECTIONS_MAX + 40);
}

static void phases_end(void **state)
{
	static const struct {
		enum phase phase;
		outbox_time limit;
	} rows[] = {
		{ PHASE_HEADERS, 5 * OUTBOX_SECONDS },  { PHASE_BODY, 10 * OUTBOX_SECONDS },
		{ PHASE_SENDING, 30 * OUTBOX_SECONDS }, { PHASE_IDLE, 30 * OUTBOX_SECONDS },
		{ PHASE_WORKING, OUTBOX_NEVER },        { PHASE_STREAM, OUTBOX_NEVER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct connections connections;
		struct connection *place;
		struct pair pair;

		connections_init(&connections);
		place = join(&connections, &pair, 1, 5);
		assert_non_null(place);
		connection_enter(place, rows[i].phase, 100);
		connections_reap(&connections,
				 rows[i].limit == OUTBOX_NEVER ? OUTBOX_DAYS : 100 + rows[i].limit);
		assert_false(is_over(&pair));
		connections_reap(&connections, OUTBOX_DAYS);
		assert_int_equal(is_over(&pair), rows[i].limit != OUTBOX_NEVER);
		close_pairs(&pair, 1);
	}
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[200];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_told_apart),
		cmocka_unit_test(a_digest_stands_for_its_token),
		cmocka_unit_test(wrong_lines_are_told_without_the_token),
		cmocka_unit_test(the_file_is_made_once),
		cmocka_unit_test(files_that_others_reach_are_refused),
		cmocka_unit_test(wrong_tokens_are_counted_by_address),
		cmocka_unit_test(many_addresses_do_not_fill_the_log),
		cmocka_unit_test(one_address_crowds_out_itself),
		cmocka_unit_test(places_are_bounded),
		cmocka_unit_test(phases_end),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
