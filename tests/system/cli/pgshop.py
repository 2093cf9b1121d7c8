# SPDX-License-Identifier: Apache-2.0
"""The same shop on PostgreSQL: one server for all tests, a database for each."""
import atexit
import contextlib
import datetime
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
from postgres import MISSING, Bouncer, Server, bin_folder  # noqa: E402,F401

from shell import Shop  # noqa: E402

try:
    import psycopg2
except ImportError:
    psycopg2 = None

_number = itertools.count(1)
_servers = []


def reason_to_skip():
    if not bin_folder():
        return MISSING
    return None if psycopg2 else "no psycopg2 (Debian: python3-psycopg2)"


def server():
    """Ours, started once. fsync is on: doctor would warn of it."""
    if not _servers:
        _servers.append(Server("fsync = on\nsynchronous_commit = on\n"))
        atexit.register(_servers[0].close)
    return _servers[0]


class Db:
    """A connection that takes the few statements which the tests share with SQLite."""

    def __init__(self, url):
        self.connection = psycopg2.connect(url)
        self.connection.autocommit = True

    def execute(self, sql, args=()):
        cursor = self.connection.cursor()
        args = list(args)
        cursor.execute(sql.replace("BEGIN IMMEDIATE", "BEGIN").replace("?", "%s") if args else
                       sql.replace("BEGIN IMMEDIATE", "BEGIN"), args or None)
        return cursor

    def executemany(self, sql, rows):
        cursor = self.connection.cursor()
        cursor.executemany(sql.replace("?", "%s"), rows)


class PgShop(Shop):
    """A database of its own."""

    def __init__(self, folder, user="postgres", on=None):
        """on: a server of the test's own, to stop it."""
        super().__init__(folder)
        self.server = on or server()
        self.name = f"shop{next(_number)}"
        self.sql(f"CREATE DATABASE {self.name}", database="postgres")
        self.url = f"postgres://{user}@127.0.0.1:{self.server.port}/{self.name}"
        # plain psql and libpq programs find it, too
        self.env.update(OUTBOX_STORE=self.url, PGHOST="127.0.0.1", PGPORT=str(self.server.port), PGUSER=user,
                        PGDATABASE=self.name)

    def sql(self, text, database=None):
        """Rows of the last statement, as the superuser."""
        connection = psycopg2.connect(host="127.0.0.1", port=self.server.port, user="postgres",
                                      dbname=database or self.name)
        try:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    @contextlib.contextmanager
    def db(self):
        db = Db(self.url)
        try:
            yield db
        finally:
            db.connection.close()

    def moment(self, seconds):
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)

    def refuse_deletes(self, table):
        self.sql("CREATE FUNCTION stuck() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stuck'; END $$;"
                 f"CREATE TRIGGER stuck BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION stuck()")

    @contextlib.contextmanager
    def consumer(self):
        db = psycopg2.connect(self.url)
        cursor = db.cursor()
        cursor.execute("SET synchronous_commit = off")
        db.commit()

        def once(consumer, message):
            cursor.execute("SELECT outbox_inbox_accept(%s, %s)", (consumer, message))
            if cursor.fetchone()[0]:
                cursor.execute("INSERT INTO effect (id) VALUES (%s)", (message,))
            db.commit()

        yield once
        db.close()

    def tables(self):
        return {row[0] for row in self.sql("SELECT relname FROM pg_class WHERE relname LIKE 'outbox%'")}

    def insert(self, **columns):
        """Times and truth have types of their own here."""
        for name, value in columns.items():
            if name.endswith(("_at", "_time")) and isinstance(value, int):
                columns[name] = datetime.datetime.fromtimestamp(value / 1e6, datetime.timezone.utc)
            elif name == "published":
                columns[name] = bool(value)
        return super().insert(**columns)

    def drop(self):
        self.sql(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)", database="postgres")
