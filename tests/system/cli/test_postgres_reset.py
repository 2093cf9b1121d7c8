# SPDX-License-Identifier: Apache-2.0
"""drop, truncate and target drop on PostgreSQL: what goes, what stays, what is refused."""
import threading

import pgshop


def ours(shop):
    return shop.sql("SELECT relname::text FROM pg_class WHERE relname LIKE 'outbox%' UNION ALL "
                    "SELECT proname::text FROM pg_proc WHERE proname LIKE 'outbox%' UNION ALL "
                    "SELECT typname::text FROM pg_type WHERE typname LIKE 'outbox%' ORDER BY 1")


def test_drop_takes_all_of_ours_and_nothing_else(pg):
    pg.sql("CREATE TABLE outbox_mine (x integer)")
    pg.sql("CREATE FUNCTION outbox_my_own() RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$")
    pg.run("drop", "--yes")
    assert ours(pg) == [("outbox_mine",), ("outbox_mine",), ("outbox_my_own",)]  # a table is a type, too
    assert pg.sql("SELECT count(*) FROM orders") == [(0,)]
    pg.run("init")
    assert len(ours(pg)) > 100


def test_drop_refuses_while_something_depends(pg):
    pg.sql("CREATE VIEW sales AS SELECT type, count(*) FROM outbox_message GROUP BY type")
    before = ours(pg)
    ran = pg.run("drop", "--yes", code=None)
    assert ran.code != 0 and "view sales depends on" in ran.err
    assert ours(pg) == before


def test_truncate_waits_for_publishers_and_goes_on_counting(pg):
    publish = "INSERT INTO outbox_message (type, payload, id) VALUES ('t', '{}', %s)"
    pg.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    writer = pgshop.psycopg2.connect(pg.url)
    writer.cursor().execute(publish, ("before",))
    ran = []
    thread = threading.Thread(target=lambda: ran.append(pg.run("truncate", "--yes")))
    thread.start()
    while not pg.sql("SELECT 1 FROM pg_locks WHERE NOT granted"):
        pass
    writer.commit()
    thread.join()
    assert ran and pg.sql("SELECT count(*) FROM outbox_message") == [(0,)]
    writer.cursor().execute(publish, ("after",))
    writer.commit()
    writer.close()
    assert pg.sql("SELECT id, seq FROM outbox_message") == [("after", 2)]
    pg.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    assert '"after"' in (pg.folder / "out.jsonl").read_text()
    assert '"before"' not in (pg.folder / "out.jsonl").read_text()


def test_a_version_is_never_used_again(pg):
    for _ in range(2):
        pg.run("relay", "--to", "events=null:", "--until-idle")
        pg.run("target", "drop", "events", "--reason", "why", "--yes")
    pg.run("relay", "--to", "events=null:", "--until-idle")
    assert pg.sql("SELECT version FROM outbox_target") == [(3,)]
    assert pg.sql("SELECT version FROM outbox_route ORDER BY 1") == [(2,), (3,)]
    pg.run("truncate", "--yes")
    assert pg.sql("SELECT version FROM outbox_target") == [(3,)]
