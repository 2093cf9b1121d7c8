# SPDX-License-Identifier: Apache-2.0
"""outbox_publish(): one message by function call, in a log of either kind."""
import pytest

import pgshop

psycopg2 = pgshop.psycopg2


@pytest.fixture(params=["none", "auto"])
def log(request, pg_bare):
    pg_bare.run("init", "--lanes", "2", "--partition", request.param)
    return pg_bare


def publish(log, *args):
    [told] = log.sql(f"SELECT id, seq, repeated FROM outbox_publish({', '.join(args)})")
    return told


@pytest.mark.parametrize("payload, column, stored", [
    ("'no json'", "payload", "no json"),
    ("'{\"a\" :1}'::json", "payload", '{"a" :1}'),
    ("'{\"a\" :1}'::jsonb", "payload", '{"a": 1}'),
    ("convert_to('raw', 'UTF8')", "payload_bin", b"raw"),
])
def test_a_payload_of_any_type(log, payload, column, stored):
    id, seq, repeated = publish(log, "'t'", payload, "key => 'k'", "priority => 7", "headers => '{\"h\":\"1\"}'")
    assert not repeated
    [(back, *rest, same)] = log.sql(f"SELECT {column}, id, seq, key, priority, headers::jsonb, created_at = event_time"
                                    " FROM outbox_message")
    assert (bytes(back) if isinstance(stored, bytes) else back) == stored
    assert rest == [id, seq, "k", 7, {"h": "1"}] and same
    [(count,)] = log.sql("SELECT num_nonnulls(payload, payload_bin) FROM outbox_message")
    assert count == 1


def test_an_id_is_accepted_once(log):
    first = publish(log, "'t'", "'one'", "id => 'mine'")
    assert first == ("mine", first[1], False)
    other = publish(log, "'t'", "'two'")
    for payload in ("'three'", "convert_to('three', 'UTF8')"):
        assert publish(log, "'t'", payload, "id => 'mine'", "lock_key => true", "key => 'k'") == ("mine", first[1], True)
    assert log.sql("SELECT payload FROM outbox_message ORDER BY seq") == [("one",), ("two",)] and not other[2]


def test_a_sequence_that_was_reset_is_named(log):
    for _ in range(9):
        publish(log, "'t'", "'{}'")
    for more in ([], ["id => 'mine'"]):
        log.sql("SELECT setval('outbox_message_seq_seq', 1)")
        with pytest.raises(psycopg2.Error, match="it was reset; run: outbox realign") as caught:
            publish(log, "'t'", "'{}'", *more)
        assert caught.value.pgcode == "OB004"
    assert log.sql("SELECT count(*) FROM outbox_message") == [(9,)]


def test_a_correction_keeps_the_rules(log):
    """Of every new version of a row, not of the first one alone."""
    id, seq, _ = publish(log, "'t'", "'{}'")
    for change, why in (("headers = '[]'", "headers is a JSON object of strings"),
                        ("payload = NULL", "give payload (text) or payload_bin (bytea), one of the two")):
        with pytest.raises(psycopg2.errors.CheckViolation) as caught:
            log.sql(f"SET outbox.redact = '{seq}'; UPDATE outbox_message SET {change} WHERE id = '{id}'")
        assert caught.value.diag.constraint_name == why
