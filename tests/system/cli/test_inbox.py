# SPDX-License-Identifier: Apache-2.0
"""The inbox of a consumer's database: made, looked at, pruned, and stormed."""
import multiprocessing
import random
import time

from shell import PATIENCE, end, until


def test_init_makes_the_inbox_alone_and_again_changes_nothing(bare):
    made = bare.run("init", "--inbox")
    assert f"{bare.name}: created an inbox" in made.out and "needs none" in made.out
    assert bare.run("init", "--inbox", "--json").json["created"] is False
    assert "outbox_inbox" in bare.tables() and "outbox_message" not in bare.tables()
    assert "create one: outbox init" in bare.run("status", code=7).err


def test_it_is_made_beside_an_outbox_and_outlives_it(shop):
    assert "outbox_inbox" not in shop.tables()
    assert "needs none" not in shop.run("init", "--inbox").out
    with shop.db() as db:
        db.execute("INSERT INTO outbox_inbox (consumer, id) VALUES ('billing', '1')")
    assert "up to date" in shop.run("upgrade").out
    shop.run("truncate", "--yes")
    shop.run("drop", "--yes")
    assert "outbox_inbox" in shop.tables() and "outbox_message" not in shop.tables()
    with shop.db() as db:
        assert db.execute("SELECT consumer, id FROM outbox_inbox").fetchall() == [("billing", "1")]


def test_what_is_not_ours_is_left_alone(bare):
    with bare.db() as db:
        db.execute("CREATE TABLE outbox_inbox (mail TEXT)")
    refused = bare.run("init", "--inbox", code=7)
    assert "outbox_inbox that is not ours is in the way; rename it" in refused.err


def test_only_the_schema_goes_with_it(bare):
    assert "--inbox makes the inbox alone" in bare.run("init", "--inbox", "--lanes", "3", code=2).err
    assert "--inbox can be combined with" in bare.run("sql", "sqlite", "--inbox", "--from", "1", code=2).err


# ---- what people ask of it ------------------------------------------------------------------------------


def receive(shop, consumer, count, days):
    """Rows that were received so many days ago."""
    old = time.time() - days * 86400
    with shop.db() as db:
        for i in range(count):
            db.execute("INSERT INTO outbox_inbox (consumer, id, received_at) VALUES (?, ?, ?)",
                       (consumer, f"{consumer}-{days}d-{i}", shop.moment(old)))


def ids(shop):
    with shop.db() as db:
        return [row[0] for row in db.execute("SELECT id FROM outbox_inbox ORDER BY id").fetchall()]


def test_list_count_and_prune(bare):
    bare.run("init", "--inbox")
    assert bare.run("inbox", "list").out == "no id\n"
    assert bare.run("inbox", "count").out == "0 ids\n"
    receive(bare, "billing", 3, 40)
    receive(bare, "mail", 2, 5)
    first = bare.run("inbox", "list", "--limit", "2", "--json").json
    assert [row["id"] for row in first["ids"]] == ["billing-40d-0", "billing-40d-1"]
    rest = bare.run("inbox", "list", "--after", first["cursor"], "--json").json
    assert [row["id"] for row in rest["ids"]] == ["billing-40d-2", "mail-5d-0", "mail-5d-1"] and not rest["cursor"]
    assert "there are more" in bare.run("inbox", "list", "--limit", "2").out
    assert "the oldest received 40 d ago" in bare.run("inbox", "count").out
    assert bare.run("inbox", "count", "--json").json["oldest"] is not None
    some = bare.run("inbox", "count", "--consumer", "mail", "--json").json
    assert some["ids"] == 2 and some["oldest"] is None, "that is another consumer's"
    assert "would remove 3 ids" in bare.run("inbox", "prune", "--older-than", "30d", "--dry-run").out
    assert bare.run("inbox", "prune", "--older-than", "30d", "--consumer", "mail", "--json").json["ids"] == 0
    pruned = bare.run("inbox", "prune", "--older-than", "30d")
    assert pruned.out == "removed 3 ids\n" and not pruned.err
    assert ids(bare) == ["mail-5d-0", "mail-5d-1"]
    warned = bare.run("inbox", "prune", "--older-than", "3d")
    assert "keeps ids for 3d" in warned.err and "can come 7d late" in warned.err and "--from-log" in warned.err
    assert "--older-than" in bare.run("inbox", "prune", code=2).err


def test_the_commands_say_that_there_is_no_inbox(shop):
    for words in (["list"], ["count"], ["prune", "--older-than", "1d"]):
        assert "there is no inbox; run: outbox init --inbox" in shop.run("inbox", *words, code=7).err
    assert "there is no inbox" in shop.run("drop", "--inbox", "--yes", code=7).err


def test_drop_with_inbox_removes_the_inbox_alone(shop):
    shop.run("init", "--inbox")
    receive(shop, "billing", 1, 1)
    assert "removed the inbox (1 id was in it)" in shop.run("drop", "--inbox", "--yes").out
    assert "outbox_inbox" not in shop.tables() and "outbox_message" in shop.tables()


def configured(shop, **relay):
    keys = "".join(f", {name}: {value}" for name, value in relay.items())
    (shop.folder / "outbox.yaml").write_text(
        f"sources: [{{ name: shop, store: \"{shop.url}\" }}]\n"
        f"targets: [{{ name: events, to: \"file:out.jsonl\" }}]\n"
        f"relay: {{ purge_interval: 1s{keys} }}\n"
        f"log: {{ level: debug }}\n")
    return "--config", "outbox.yaml"


def test_a_relay_prunes_by_age(shop):
    shop.run("init", "--inbox")
    receive(shop, "billing", 2, 40)
    receive(shop, "mail", 2, 20)
    relay = shop.start("relay", *configured(shop))
    until(lambda: len(ids(shop)) == 2, "the relay prunes what is older than 30 days")
    assert "removed 2 ids from the inbox" in end(relay)[2]
    assert ids(shop) == ["mail-20d-0", "mail-20d-1"]
    relay = shop.start("relay", *configured(shop, retain_inbox="10d"))
    until(lambda: not ids(shop), "and what is older than 10 days")
    end(relay)


def test_a_prune_that_fails_is_a_clean_up_that_fails(shop):
    shop.run("init", "--inbox")
    receive(shop, "billing", 1, 40)
    shop.refuse_deletes("outbox_inbox")
    shop.insert()
    log = shop.folder / "log"
    with log.open("wb") as stderr:
        relay = shop.start("relay", *configured(shop), stderr=stderr)
    until(lambda: "clean-up: " in log.read_text(), "it is told")
    until(lambda: shop.lines(), "delivery goes on")
    relay.terminate()
    assert relay.wait(PATIENCE) == 0


# ---- each once, whoever comes -----------------------------------------------------------------------------

MESSAGES = 2000


def consume(shop, consumer, work):
    """Process messages as they come: accept, do the work, commit."""
    with shop.consumer() as once:
        for message in work:
            once(consumer, message)


def test_a_storm_of_duplicates_has_each_effect_once(bare):
    """Each message three times, four consumers at once, one of which is killed and gets all of its messages again."""
    bare.run("init", "--inbox")
    with bare.db() as db:
        db.execute("CREATE TABLE effect (id TEXT NOT NULL)")
    deliveries = [f"m{i}" for i in range(MESSAGES)] * 3
    random.Random(7).shuffle(deliveries)
    # what comes at the same time at two of them
    shares = [deliveries[i::4] for i in range(3)] + [deliveries[2::4][:50] + deliveries[3::4]]
    started = [multiprocessing.Process(target=consume, args=(bare, "billing", share)) for share in shares]
    for process in started:
        process.start()

    def effects():
        with bare.db() as db:
            return db.execute("SELECT count(*) FROM effect").fetchone()[0]

    until(lambda: effects() > MESSAGES / 4, "a quarter is done")
    started[0].kill()
    started[0].join()
    again = multiprocessing.Process(target=consume, args=(bare, "billing", shares[0]))
    again.start()
    for process in started[1:] + [again]:
        process.join()
        assert process.exitcode == 0
    with bare.db() as db:
        rows = db.execute("SELECT id, count(*) FROM effect GROUP BY id").fetchall()
    assert sorted(rows) == sorted((f"m{i}", 1) for i in range(MESSAGES))
    assert bare.run("inbox", "count", "--consumer", "billing", "--json").json["ids"] == MESSAGES
