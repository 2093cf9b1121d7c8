# SPDX-License-Identifier: Apache-2.0
"""SQLAlchemy's sessions and Django's atomic blocks, as they are."""
import os
import subprocess
import sys

import pytest
import sqlalchemy
from sqlalchemy.orm import declarative_base, sessionmaker

from conftest import CLIENT, POSTGRES
from outbox_client import Message, NoTransaction, publish, published
from outbox_client.sqlalchemy import harvest

Base = declarative_base()
pytestmark = pytest.mark.parametrize("place", ["sqlite3", "psycopg2"], indirect=True)  # what Debian's know


class Order(Base):
    __tablename__ = "orders"
    id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True, autoincrement=False)
    note = sqlalchemy.Column(sqlalchemy.Text)

    def __init__(self, **values):
        super().__init__(**values)
        self.events = []

    @sqlalchemy.orm.reconstructor
    def load(self):
        self.events = []

    def happen(self, *types):
        self.events += [Message(type, {"id": self.id}, key=str(self.id)) for type in types]
        return self


@pytest.fixture(name="sessions")
def make_sessions(place):
    url = f"sqlite:///{place.folder}/shop.db" if place.driver == "sqlite3" else \
        POSTGRES.replace("postgres://", "postgresql+psycopg2://")
    engine = sqlalchemy.create_engine(url)
    if place.driver == "sqlite3":  # https://docs.sqlalchemy.org: without these savepoints do not work in pysqlite
        @sqlalchemy.event.listens_for(engine, "connect")
        def connected(conn, _):
            conn.isolation_level = None

        @sqlalchemy.event.listens_for(engine, "begin")
        def begin(conn):
            conn.exec_driver_sql("BEGIN")
    place.execute(place.look, "DELETE FROM orders")
    sessions = sessionmaker(engine)
    harvest(sessions, schema=place.schema)
    yield sessions
    engine.dispose()


def test_events_of_entities_are_published_with_them(place, sessions):
    with sessions() as session:
        order = Order(id=1).happen("placed", "paid")
        session.add(order)
        session.flush()
        assert not order.events
        assert [row["type"] for row in published(session, schema=place.schema)] == ["placed", "paid"]
        order.happen("shipped")  # and nothing else changes
        session.commit()
        assert place.types() == ["placed", "paid", "shipped"]
        session.delete(order.happen("cancelled"))
        session.commit()
    assert place.types()[3:] == ["cancelled"]


def test_a_rollback_drops_them(place, sessions):
    with sessions() as session:
        order, pending = Order(id=1).happen("flushed"), Order(id=2).happen("pending")
        session.add(order)
        session.flush()
        order.happen("collected")
        session.add(pending)
        session.rollback()
        assert not order.events and not pending.events
        session.add(Order(id=3).happen("placed"))
        session.commit()
        kept = session.get(Order, 3).happen("dropped")
        session.rollback()
        assert not kept.events
        session.commit()
    assert place.types() == ["placed"]


def test_a_savepoint_drops_its_own_alone(place, sessions):
    with sessions() as session:
        order = Order(id=1).happen("placed")
        session.add(order)
        session.flush()
        order.happen("before")  # collected, and the session is clean
        savepoint = session.begin_nested()
        order.happen("inside")
        savepoint.rollback()
        order.happen("behind")
        with session.begin_nested():
            session.add(Order(id=2).happen("released"))
        session.commit()
    assert place.types() == ["placed", "before", "behind", "released"]


def test_a_session_in_autocommit_is_refused(place, sessions):
    bind = sessions.kw["bind"]
    with sessionmaker(sqlalchemy.create_engine(bind.url, isolation_level="AUTOCOMMIT"))() as session, \
            pytest.raises(NoTransaction):
        publish(session, Message("t", 1), schema=place.schema)
    with bind.begin() as conn:
        publish(conn, Message("core", 1), schema=place.schema)
    assert place.types() == ["core"]


DJANGO = """
import django, sys
from django.conf import settings
settings.configure(DATABASES={{"default": {database}}}, USE_TZ=True)
django.setup()
from django.db import connection, transaction
from outbox_client import Message, NoTransaction, once, publish, published
how = {{"schema": {schema!r}}}
try:
    publish(connection, Message("refused", 1), **how)
    sys.exit("it was not refused")
except NoTransaction as error:
    assert "transaction.atomic()" in str(error)
with transaction.atomic():
    publish(connection, Message("placed", 1), **how)
    try:
        with transaction.atomic():
            publish(connection, Message("inside", 1), **how)
            raise KeyError
    except KeyError:
        pass
    assert [row["type"] for row in published(connection, **how)] == ["placed"]
try:
    with transaction.atomic():
        publish(connection, Message("rolled back", 1), **how)
        raise KeyError
except KeyError:
    pass
handle = once("django " + sys.argv[1], **how)(lambda conn, event: publish(conn, Message("handled", 1), **how))
for _ in range(2):
    with transaction.atomic():
        handle(connection, {{"id": "order-42"}})
"""


def test_django(place):
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{place.folder}/shop.db"} if place.driver == "sqlite3" \
        else {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres", "HOST": "127.0.0.1",
              "PORT": os.environ["PGPORT"]}
    done = subprocess.run([sys.executable, "-c", DJANGO.format(database=database, schema=place.schema), str(place.before)],
                          check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(CLIENT)})
    assert done.returncode == 0, done.stderr
    assert place.types() == ["placed", "handled"]
