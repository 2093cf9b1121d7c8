# SPDX-License-Identifier: Apache-2.0
"""The inbox of a consumer's database: made, printed as SQL, looked at."""


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
