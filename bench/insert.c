/* SPDX-License-Identifier: Apache-2.0 */

/* insert DATABASE: what `outbox publish` to SQLite costs with SQLite alone. */

#include <sqlite3.h>
#include <stddef.h>

int main(int argc, char **argv)
{
	sqlite3 *db = NULL;
	int r;

	if (argc != 2)
		return 2;
	r = sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL);
	if (r == SQLITE_OK)
		r = sqlite3_exec(db,
				 "INSERT INTO outbox_message (type, payload) VALUES ('publish', '{}')",
				 NULL, NULL, NULL);
	sqlite3_close(db);
	return r == SQLITE_OK ? 0 : 1;
}
