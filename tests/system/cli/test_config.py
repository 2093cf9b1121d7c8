# SPDX-License-Identifier: Apache-2.0
"""outbox.yaml: checked, shown, described, and run."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from shell import end, until

ROOT = pathlib.Path(os.environ.get("OUTBOX_MAN") or pathlib.Path(__file__).parents[3] / "docs" / "man").parents[1]

GOOD = """\
sources:
  - name: shop
    store: "sqlite:${DB:-app.db}"
targets:
  - name: events
    to: file:out.jsonl
  - name: partner
    to: file:partner.jsonl
    external: true
    match: { type: ["order.*"] }
    start: oldest
"""


@pytest.fixture
def write(shop):
    def write_file(text, name="outbox.yaml"):
        (shop.folder / name).write_text(text)
        return shop
    return write_file


def values(ran):
    return {row["key"]: (row["value"], row["from"]) for row in ran.json["values"]}


def test_a_good_file(write):
    shop = write(GOOD)
    assert shop.run("config", "check").out == "outbox.yaml: good: 1 source, 2 targets\n"
    assert shop.run("config", "check", "--json").json == {"file": "outbox.yaml", "ok": True, "problems": [], "more": 0}
    assert "targets.events.to" in shop.run("config", "show").out


def test_the_environment_names_the_file(write):
    write(GOOD)
    shop = write(GOOD.replace("partner", "other"), "named.yaml")
    for named, args, file in (("named.yaml", [], "named.yaml"), ("named.yaml", ["outbox.yaml"], "outbox.yaml"),
                              ("", [], "outbox.yaml")):
        env = {"OUTBOX_CONFIG": named}
        assert shop.run("config", "check", *args, env=env).out == f"{file}: good: 1 source, 2 targets\n"
        told = shop.run("config", "show", *args, "--json", env=env)
        assert told.json["file"] == file
        assert ("targets.other.to" in values(told)) == (file == "named.yaml")


def test_the_file_is_an_option_as_everywhere(write):
    shop = write(GOOD, "named.yaml")
    assert shop.run("config", "check", "--config", "named.yaml").out == "named.yaml: good: 1 source, 2 targets\n"
    assert shop.run("config", "show", "--config", "named.yaml", "--json").json["file"] == "named.yaml"
    for command in ("check", "show"):
        assert "the file is named twice" in shop.run("config", command, "a.yaml", "--config", "b.yaml", code=2).err


def test_every_mistake_is_told_with_its_place(write):
    shop = write(GOOD.replace("external", "extrenal") + "relay: { batch: many }\n")
    ran = shop.run("config", "check", "outbox.yaml", code=2)
    assert ran.err.splitlines() == [
        'outbox.yaml:9:5: targets[1] "partner", extrenal: there is no such key; did you mean external?',
        'outbox.yaml:12:17: relay.batch: "many" is not a whole number from 1 to 100000',
        "outbox config check: outbox.yaml: 2 mistakes"]
    told = shop.run("config", "check", "--json", code=2).json
    assert not told["ok"] and [(p["line"], p["column"]) for p in told["problems"]] == [(9, 5), (12, 17)]
    # the others say the same, and do nothing
    for args in (["config", "show"], ["relay", "--config", "outbox.yaml", "--once"]):
        assert "outbox.yaml:12:17: relay.batch" in shop.run(*args, code=2).err


WRONG = """\
sources:
  - name: shop
    store: postgres://app@db:99999/shop
  - name: two
    store: sqlite:x.db?foo=1
    targets: [nobody]
targets:
  - name: events
    to: amqp://relay@mq/?exchange=shop&foo=1
    dead_letter: parkd
  - name: nowhere
    to: nats://n:99999/
    dead_letter: limbo
  - name: parked
    to: redis://user@r1/
  - name: tls
    to: rediss://x/
    batch: many
  - name: f
    to: "file:"
admin:
  listen: 0.0.0.0:8040
"""


def test_an_option_in_the_query_of_a_webhook_is_refused(write):
    """It would be sent to the receiver and have no effect; what a receiver may have itself is passed through."""
    def check(query, code):
        shop = write("sources: [{ name: shop, store: 'sqlite:app.db' }]\n"
                     f"targets: [{{ name: hook, to: 'https://partner.example/x?a=1&{query}#timeout=5s' }}]\n")
        return shop.run("config", "check", code=code).err

    told = check("in_flight=4&b=2", 2)
    assert 'option in_flight: "in_flight=4" is in the query, which belongs to the receiver' in told
    assert "behind a #, https://host/path?query#in_flight=4 (or %69n_flight" in told
    assert "option secret_file:" in check("secret_file=/run/s", 2)
    told = check("token=x&header.X-Key=hush", 2)
    assert "option header.X-Key:" in told and "hush" not in told
    for query in ("token=x&key=y&timeout=3", "%69n_flight=4", "in_flights=4", "b=in_flight"):
        check(query, 0)


def test_drivers_and_the_admin_server_are_asked_at_once(write):
    """Also beside mistakes of other kinds, and each with its place."""
    shop = write(WRONG)
    told = shop.run("config", "check", code=2).err.splitlines()
    expected = [
        ("3:12", 'sources[0] "shop", store: the store\'s URL, port: "99999" is not a whole number from 1 to 65535'),
        ("5:12", 'sources[1] "two", store: unknown option "foo": sqlite: URLs take busy, name; repair or remove it'),
        ("6:14", 'sources[1] "two", targets: "nobody" is not the name of a target'),
        ("9:9", 'targets[0] "events", to: rabbitmq mq:5672: no password; add password_file=PATH; '
                'or write password: file:PATH beside it'),
        ("9:9", 'targets[0] "events", to: unknown option "foo"'),
        ("10:18", 'targets[0] "events", dead_letter: "parkd" is not the name of a target; did you mean parked?'),
        ("12:9", 'targets[1] "nowhere", to: the port: "99999" is not a whole number from 1 to 65535'),
        ("13:18", 'targets[1] "nowhere", dead_letter: "limbo" is not the name of a target; '
                  'add a target of that name, with match: { nothing: true }'),
        ("15:9", 'targets[2] "parked", to: redis: a user without a password; write user:password@, '
                 'or add password_file=PATH; or write password: file:PATH beside it'),
        ("17:9", 'targets[3] "tls", to: rediss: this build'),
        ("18:12", 'targets[3] "tls", batch: "many" is not a whole number'),
        ("20:9", 'targets[4] "f", to: file: needs the path of a file'),
        ("22:11", "admin.listen: 0.0.0.0:8040 can be reached from other machines"),
    ]
    assert len(told) == len(expected) + 1
    for line, (place, text) in zip(told, expected):
        assert line.startswith(f"outbox.yaml:{place}: {text}")
    # the relay says the same
    for mode in ([], ["--once"]):
        assert shop.run("relay", "--config", "outbox.yaml", *mode, code=2).err.splitlines()[:-1] == told[:-1]


@pytest.mark.parametrize("admin, place, text", [
    ("listen: 127.0.0.1:99999", "13:11", 'listen: "127.0.0.1:99999" is not ADDRESS:PORT'),
    ("listen: 127.0.0.1:8040\n  cert: c.pem", "14:9", "cert: is set without admin.key; TLS needs both"),
    ("listen: unix:/tmp/x\n  cert: c.pem\n  key: k.pem", "14:9", "cert: a UNIX socket has no TLS"),
    ("listen: 127.0.0.1:8040\n  cert: c.pem\n  key: k.pem", "15:8", "key: k.pem cannot be read; name a PEM file"),
])
def test_the_admin_servers_keys(write, admin, place, text):
    err = write(f"{GOOD}admin:\n  {admin}\n").run("config", "check", code=2).err
    assert f"outbox.yaml:{place}: admin.{text}" in err


def test_a_dead_letter_of_another_relay_can_be_named(write):
    """By a target that this file's source does not deliver to."""
    text = GOOD.replace('app.db}"\n', 'app.db}"\n    targets: [events]\n').replace("out.jsonl", "out.jsonl\n    dead_letter: partner")
    write(text.replace("    external: true\n", "")).run("config", "check")


def test_schemes_are_those_of_this_build(write):
    shop = write(GOOD.replace("file:out.jsonl", "carrier-pigeon://x").replace("sqlite:", "filing-cabinet:"))
    err = shop.run("config", "check", code=2).err
    assert 'outbox.yaml:3:12: sources[0] "shop", store: "filing-cabinet:" is not known to this build; there are' in err
    assert 'outbox.yaml:6:9: targets[0] "events", to: "carrier-pigeon:" is not known to this build; there are' in err


def test_folders_that_are_not_there(write):
    text = GOOD.replace("file:out.jsonl", "file:nodir/o.jsonl") + "relay: { archive: old }\n"
    shop = write(text)
    assert shop.run("config", "check", code=2).err.splitlines()[:-1] == [
        'outbox.yaml:6:9: targets[0] "events", to: there is no folder nodir; create it first',
        "outbox.yaml:12:19: relay.archive: there is no folder old; create it first"]
    for folder in ("nodir", "old"):
        (shop.folder / folder).mkdir()
    shop.run("config", "check")
    (shop.folder / "old").rmdir()
    (shop.folder / "old").write_text("")
    assert "outbox.yaml:12:19: relay.archive: old is not a folder" in shop.run("config", "check", code=2).err


def test_no_file(bare):
    ran = bare.run("config", "check", code=3)
    assert "outbox.yaml: no such file; outbox config reference prints one to begin with" in ran.err
    (bare.folder / "folder").mkdir()
    assert "is not a file" in bare.run("config", "check", "folder", code=2).err


def test_who_goes_before_whom(write):
    shop = write(GOOD + "relay: { batch: 1, workers: 1, poll: 1s }\n")
    env = {"OUTBOX_RELAY_BATCH": "2", "OUTBOX_RELAY_WORKERS": "2"}
    told = values(shop.run("config", "show", "--json", "--set", "relay.workers=3", env=env))
    assert told["relay.poll"] == ("1s", "outbox.yaml:12:38")
    assert told["relay.batch"] == ("2", "OUTBOX_RELAY_BATCH")
    assert told["relay.workers"] == ("3", "--set relay.workers")
    assert told["relay.batch_bytes"] == ("8MiB", "default")
    err = shop.run("config", "check", env={"OUTBOX_RELAY_BACTH": "2"}, code=2).err
    assert "OUTBOX_RELAY_BACTH: this variable sets no key; did you mean OUTBOX_RELAY_BATCH?" in err


def test_secrets_are_not_shown(write):
    shop = write(GOOD.replace('"sqlite:${DB:-app.db}"', '"postgres://app@db/shop"\n    password: "${PW}"'))
    secret = shop.folder / "secret"
    secret.write_text("s3cr3t-word\n")
    secret.chmod(0o600)
    for env in ({"PW": "s3cr3t-word"}, {"PW": f"file:{secret}"}):
        for args in (["show"], ["show", "--json"], ["check"]):
            ran = shop.run("config", *args, env=env)
            assert "s3cr3t-word" not in ran.out + ran.err
    secret.chmod(0o644)
    err = shop.run("config", "check", env={"PW": f"file:{secret}"}, code=2).err
    assert f'outbox.yaml:4:15: sources[0] "shop", password: {secret} can be read or changed by others' in err
    # wrong values too: of a URL its password, of a secret nothing
    err = shop.run("config", "check", "--set", "targets.events.to=//u:s3cr3t-word@mq/", env={"PW": "x"}, code=2).err
    assert "s3cr3t-word" not in err and "is not a URL" in err


@pytest.mark.sqlite
def test_the_relay_does_what_the_file_says(write):
    shop = write(GOOD)
    inside = shop.insert(type="order.placed", key="1")
    outside = shop.insert(type="order.paid", key="1", published=1)
    shop.insert(type="invoice.sent", published=1)
    told = shop.run("relay", "--config", "outbox.yaml", "--until-idle", "--json").json
    assert told["counts"]["delivered"] == 4
    assert [m["id"] for m in shop.lines()][:2] == [inside, outside]
    partner = shop.lines("partner.jsonl")
    assert [m["id"] for m in partner] == [outside] and "sequence" not in partner[0]


@pytest.mark.sqlite
def test_the_file_and_the_options_make_the_same_relay(write):
    """Targets by options, then by the file: nothing is new, nothing is registered anew."""
    shop = write(GOOD)
    shop.insert(published=1)
    shop.run("relay", "--to", "events=file:out.jsonl", "--to", "partner=file:partner.jsonl", "--match",
             "partner=order.*", "--envelope", "partner=external", "--until-idle")
    before = shop.run("target", "list", "--json").json
    told = shop.run("relay", "--config", "outbox.yaml", "--until-idle", "--json").json
    assert told["counts"]["delivered"] == 0
    assert shop.run("target", "list", "--json").json == before


@pytest.mark.sqlite
def test_retries_and_batches_reach_the_engine(write):
    shop = write("sources: [{ name: shop, store: 'sqlite:app.db' }]\n"
                 "targets: [{ name: events, to: 'file:out.jsonl', batch: 2 }]\n")
    for _ in range(6):
        shop.insert()
    assert shop.run("relay", "--config", "outbox.yaml", "--until-idle", "--json").json["counts"]["batches"] >= 3
    for _ in range(6):
        shop.insert()
    told = shop.run("relay", "--config", "outbox.yaml", "--until-idle", "--json", "--set", "targets.events.batch=100")
    assert told.json["counts"]["batches"] < 3


@pytest.mark.sqlite
def test_the_daemon_logs_as_it_is_told(write):
    shop = write(GOOD + "log: { format: json }\nrelay: { instance: relay-a }\n")
    shop.insert()
    process = shop.start("relay", "--config", "outbox.yaml")
    until(shop.lines, "a delivery")
    code, _, err = end(process)
    assert code == 0
    events = [json.loads(line) for line in err.splitlines()]
    assert all({"time", "level", "event", "message"} <= set(event) for event in events)
    assert any("sqlite:app.db -> events" in event["message"] for event in events)
    quiet = shop.run("relay", "--config", "outbox.yaml", "--once", "--set", "log.level=warn")
    assert quiet.err == ""


def two_sources(write):
    """A second database, beside the first, in one file; a message in each."""
    shop = write(GOOD.replace("targets:", '  - { name: other, store: "sqlite:other.db" }\ntargets:'))
    shop.run("init", "--store", "sqlite:other.db")
    shop.run("publish", "--store", "sqlite:other.db", "--type", "x.y", "--data", "2")
    shop.insert(type="a.b", payload="1")
    return shop


@pytest.mark.sqlite
def test_several_sources(write):
    shop = two_sources(write)
    ran = shop.run("relay", "--config", "outbox.yaml", "--until-idle", "--json")
    assert ran.json["counts"]["delivered"] == 2
    assert "shop: sqlite:app.db ->" in ran.err and "other: sqlite:other.db ->" in ran.err
    assert sorted(m["data"] for m in shop.lines()) == [1, 2]


@pytest.mark.sqlite
def test_a_message_is_looked_for_in_all_sources(write):
    shop = two_sources(write)
    for store in ("sqlite:app.db", "sqlite:other.db"):
        shop.run("publish", "--store", store, "--id", "both", "--type", "a", "--data", "3")
    shop.run("publish", "--store", "sqlite:other.db", "--id", "mine", "--type", "a", "--data", "{broken", "--content-type", "x/json5")
    show = ["show", "--config", "outbox.yaml"]
    out = shop.run(*show, "mine").out
    assert out.startswith("other\nmessage mine\n") and "--config outbox.yaml --source other" in " ".join(out.split())
    assert re.findall(r"^(?:shop|other|message both)$", shop.run(*show, "both").out, re.M) == ["shop", "message both", "other", "message both"]
    assert [(s["source"], s["message"]["id"]) for s in shop.run(*show, "mine", "--json").json["sources"]] == [("other", "mine")]
    assert 'no message with the id "none", in none of the 2 sources' in shop.run(*show, "none", code=3).err
    assert "error" in shop.run(*show, "none", "--json", code=3).json
    assert "--raw-payload needs --source" in shop.run(*show, "mine", "--raw-payload", code=2).err
    assert shop.run(*show, "mine", "--raw-payload", "--source", "other").out == "{broken"
    # one that cannot be asked hides no other, and what is not found may be there
    (shop.folder / "other.db").write_bytes(b"no database" * 100)
    ran = shop.run(*show, "both", code=None)
    assert "message both" in ran.out and "other  unreachable" in ran.out and ran.code
    assert "not every source" in shop.run(*show, "mine", code=None).err


@pytest.mark.sqlite
def test_one_of_several_sources(write):
    shop = two_sources(write)
    err = shop.run("relay", "--config", "outbox.yaml", "--source", "x", "--once", code=3).err
    assert 'no source "x" in the file; there are: shop, other' in err
    shop.run("relay", "--config", "outbox.yaml", "--source", "shop", "--until-idle")
    assert [m["data"] for m in shop.lines()] == [1]


@pytest.mark.sqlite
def test_a_daemon_for_several_sources(write):
    shop = two_sources(write)
    process = shop.start("relay", "--config", "outbox.yaml")
    until(lambda: len(shop.lines()) == 2, "a delivery from each")
    shop.insert(type="a.b", payload="3")
    shop.run("publish", "--store", "sqlite:other.db", "--type", "x.y", "--data", "4")
    until(lambda: len(shop.lines()) == 4, "another one from each")
    code, _, err = end(process)
    assert code == 0 and "delivered 4, failed 0" in err
    for store in ("sqlite:app.db", "sqlite:other.db"):
        lanes = shop.run("status", "--store", store, "--json").json["targets"][0]
        assert lanes["delivered"] == 2


@pytest.mark.sqlite
def test_a_source_that_is_not_there_is_named(write):
    shop = write(GOOD.replace("targets:", '  - { name: other, store: "sqlite:other.db" }\ntargets:'))
    assert 'source "other": ' in shop.run("relay", "--config", "outbox.yaml", "--once", code=3).err


@pytest.mark.sqlite
def test_the_failure_of_one_source_is_told_with_its_name(write):
    shop = two_sources(write)
    shop.run("relay", "--config", "outbox.yaml", "--until-idle")
    shop.insert(type="a.b", payload="{broken")
    assert shop.run("relay", "--config", "outbox.yaml", "--until-idle", "--json", code=1).json["counts"]["failed"] == 1
    shop.insert(type="a.b")
    ran = shop.run("relay", "--config", "outbox.yaml", "--once", "--set", "targets.events.to=file:/nowhere/x.jsonl", code=2)
    last = ran.err.splitlines()[-1]
    assert last.startswith('outbox relay: source "shop": ') and "/nowhere/x.jsonl" in last, ran.err


@pytest.mark.parametrize("args, told", [
    (["--config", "outbox.yaml", "--to", "x=null:"], "--to cannot be combined with --config"),
    (["--config", "outbox.yaml", "--batch", "5"], "--batch cannot be combined with --config"),
    (["--config", "outbox.yaml", "--instance", "x"], "--instance cannot be combined with --config"),
    (["--config", "outbox.yaml", "--store", "sqlite:x.db"], "--store cannot be combined with --config"),
    (["--to", "x=null:", "--set", "relay.batch=5"], "--set works only with --config FILE"),
    (["--to", "x=null:", "--source", "x"], "--source works only with --config FILE"),
    (["--config", "outbox.yaml", "--set", "x"], '--set: "x" is not KEY=VALUE; write --set relay.batch=100'),
])
def test_what_does_not_go_together(write, args, told):
    assert told in write(GOOD).run("relay", *args, "--once", code=2).err


def test_a_new_target_must_say_where_it_starts(write):
    shop = write(GOOD.replace("    start: oldest\n", ""))
    shop.insert()
    shop.run("relay", "--config", "outbox.yaml", "--once", "--set", "targets.partner.start=oldest")
    (shop.folder / "outbox.yaml").write_text(GOOD.replace("partner\n", "late\n").replace("    start: oldest\n", ""))
    assert "start: oldest, start: now or a time" in shop.run("relay", "--config", "outbox.yaml", "--once", code=2).err


def test_the_reference_is_a_good_file_and_in_the_repository(bare):
    text = bare.run("config", "reference").out
    assert text == (ROOT / "contrib" / "outbox.yaml.example").read_text(), "outbox config reference > contrib/outbox.yaml.example"
    told = bare.run("config", "check", "-", data=text.encode()).out
    assert told == "stdin: good: 1 source, 1 target\n"  # as it stands: it needs no secret
    told = bare.run("config", "check", "-", data=text.replace("sources:", "sauces:").encode(), code=2).err
    assert "stdin:" in told and "sauces: there is no such key" in told


def check_sample(bare, text):
    """As it is printed: only the secrets have to be put there."""
    for name, secret in (("shop", "s3cr3t"), ("mq", "s3cr3t"), ("pager", "https://pager.example/hook")):
        path = bare.folder / name
        path.write_text(secret + "\n")
        path.chmod(0o600)
    (bare.folder / "outbox.yaml").write_text(text.replace("file:/run/secrets/", f"file:{bare.folder}/"))
    bare.run("config", "check")


@pytest.mark.parametrize("page", ["README.md", "docs/configuration.md"])
def test_the_files_in_the_pages_are_good(bare, page):
    blocks = re.findall(r"^```yaml\n(# outbox.yaml\n.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    assert blocks
    for text in blocks:
        check_sample(bare, text)


@pytest.mark.sqlite
@pytest.mark.parametrize("key, value", [
    ("sources.shop.password", "s3cr3t"), ("targets.events.to", "redis://u:s3cr3t@127.0.0.1:1/")])
def test_a_secret_in_set_is_warned_of(write, key, value):
    shop = write(GOOD)
    for args in (["config", "check"], ["config", "show"], ["relay", "--once", "--config", "outbox.yaml"]):
        err = shop.run(*args, "--set", f"{key}={value}", code=None).err
        assert err.count(f"can read the password in --set {key} (ps shows it); write password: file:PATH into the file") == 1
        assert "s3cr3t" not in err
    for quiet in ("sources.shop.password=file:/none", "targets.events.to=redis://u@127.0.0.1:1/"):
        assert "ps shows it" not in shop.run("config", "check", "--set", quiet, code=None).err


def test_the_man_page_has_the_tables_keys(bare):
    schema = bare.run("config", "schema", "--json").raw
    done = subprocess.run([ROOT / "scripts" / "config-keys"], input=schema, capture_output=True, check=True)
    page = (ROOT / "docs" / "man" / "outbox-config.1.scd").read_text()
    assert done.stdout.decode() in page, "outbox config schema | scripts/config-keys"


def schema_at(schema, key):
    """The part of the schema that describes a key of config show."""
    for word in key.split("."):
        schema = schema["items"] if schema["type"] == "array" else schema["properties"][word]
    return schema


def test_the_schema_describes_every_key(write):
    shop = write(GOOD)
    schema = shop.run("config", "schema", people=False).json
    assert schema["required"] == ["sources", "targets"] and schema["additionalProperties"] is False
    for key in values(shop.run("config", "show", "--json")):
        assert schema_at(schema, key)["description"], key


def test_a_new_target_starts_paused(shop):
    shop.insert()
    (shop.folder / "outbox.yaml").write_text(f"sources:\n  - {{ name: shop, store: '{shop.url}' }}\n"
                                             "targets:\n  - { name: events, to: 'file:out.jsonl', paused: true }\n")
    shop.run("relay", "--config", "outbox.yaml", "--once")
    assert not shop.lines() and "configuration" in shop.run("status").out
    shop.run("resume", "events")
    shop.run("relay", "--config", "outbox.yaml", "--once")
    assert len(shop.lines()) == 1
