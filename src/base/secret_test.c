/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/secret.h"
#include "base/unit_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

struct place {
	char folder[64], file[80], link[80];
};

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	FILE *file;

	assert_non_null(p);
	strcpy(p->folder, "/tmp/secret_test.XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	assert_int_equal(chmod(p->folder, 0755), 0);
	snprintf(p->file, sizeof(p->file), "%s/file", p->folder);
	snprintf(p->link, sizeof(p->link), "%s/link", p->folder);
	file = fopen(p->file, "w");
	assert_non_null(file);
	fputs("hush hush\r\nmore\n", file);
	assert_int_equal(fclose(file), 0);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	unlink(p->link);
	unlink(p->file);
	rmdir(p->folder);
	free(p);
	return 0;
}

static void assert_read(const char *path)
{
	char *secret = NULL;

	assert_ok(secret_read("password_file", path, &secret, err));
	assert_string_equal(secret, "hush hush");
	secret = secret_free(secret);
}

static void assert_refused(const char *path, const char *why)
{
	char *secret = NULL;

	assert_fails(secret_read("password_file", path, &secret, err), OUTBOX_ECONFIG, why);
	assert_fails(secret_read("password_file", path, &secret, err), OUTBOX_ECONFIG, path);
	assert_null(secret);
}

static void a_file_of_ours(void **state)
{
	static const mode_t open_modes[] = { 0640, 0604, 0660, 0644, 0620, 0602 };
	struct place *p = *state;

	for (size_t i = 0; i < ARRAY_SIZE(open_modes); i++) {
		assert_int_equal(chmod(p->file, open_modes[i]), 0);
		assert_refused(p->file, "chmod 600");
	}
	assert_int_equal(chmod(p->file, 0600), 0);
	assert_read(p->file);
	assert_int_equal(chmod(p->file, 0400), 0);
	assert_read(p->file);
}

static void only_files(void **state)
{
	struct place *p = *state;

	assert_int_equal(chmod(p->file, 0600), 0);
	assert_int_equal(symlink(p->file, p->link), 0);
	assert_refused(p->link, "is a symbolic link; name the file itself");
	assert_refused(p->folder, "is not a file");
	assert_int_equal(unlink(p->link), 0);
	assert_int_equal(mkfifo(p->link, 0600), 0);
	assert_refused(p->link, "is not a file");
	assert_refused("/nowhere/at/all", "cannot be read: there is no such file");
	assert_int_equal(truncate(p->file, 0), 0);
	assert_refused(p->file, "is empty");
}

/* Only root can make files of others. */
static void files_of_others(void **state)
{
	struct place *p = *state;

	if (geteuid() != 0)
		skip();
	/* Mounted into a container that runs as root. */
	assert_int_equal(chmod(p->file, 0444), 0);
	assert_read(p->file);
	/* Given by root to a user, and to all of its machine. */
	assert_int_equal(seteuid(NOBODY), 0);
	assert_read(p->file);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(p->file, 0644), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	assert_read(p->file);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(p->file, 0666), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	assert_refused(p->file, "chmod 600");
	assert_int_equal(seteuid(0), 0);
	/* Whoever else owns it may change it. */
	assert_int_equal(chmod(p->file, 0600), 0);
	assert_int_equal(chown(p->file, NOBODY, (gid_t)-1), 0);
	assert_refused(p->file, "belongs to another user");
}

static void names(void **state)
{
	static const char *const secret[] = { "password", "password_file", "SSL_Password",
					      "pwd",      "client.secret", "token",
					      "passfile", "ssl.key.pem",   "sasl.oauthbearer.config" };
	static const char *const plain[] = { "",     "key",       "ca",
					     "sasl", "client.id", "compression.type" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(secret); i++)
		assert_true(secret_is_name(secret[i]));
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		assert_false(secret_is_name(plain[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_of_ours, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_of_others, set_up, tear_down),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
