# SPDX-License-Identifier: Apache-2.0
"""Arguments: every mistake names the option and the remedy, every command explains itself."""
import json
import os
import re
import subprocess

import pytest

from shell import BINARY

COMMANDS = [c["name"] for c in json.loads(subprocess.run(
    [BINARY, "help", "--json"], capture_output=True, check=True).stdout)["commands"]]
EXITS = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 70, 71, 128}


SECRETS = [
    (["--store", "postgres://app:s3cr3t@127.0.0.1:1/x"], "--store", "OUTBOX_STORE, or the password in PGPASSFILE"),
    (["--store", "postgres://app@127.0.0.1:1/x?password=s3cr3t"], "--store", "PGPASSFILE"),
]


@pytest.mark.parametrize("args, option, remedy", SECRETS)
def test_a_password_on_the_command_line_is_warned_of(bare, args, option, remedy):
    err = bare.run("status", *args, code=None).err
    assert f"can read the password in {option} (ps shows it); write password_file=PATH into the URL, or" in err
    assert remedy in err and "s3cr3t" not in err
    # not where others cannot read it
    assert "ps shows it" not in bare.run("status", env={"OUTBOX_STORE": args[1]}, code=None).err
    assert "ps shows it" not in bare.run("status", "--store", "postgres://app@127.0.0.1:1/x?password_file=/none", code=None).err


@pytest.mark.sqlite
def test_a_targets_password_on_the_command_line_is_warned_of(shop):
    err = shop.run("relay", "--to", "e=redis://u:s3cr3t@127.0.0.1:1/", "--once", code=None).err
    assert err.count("can read the password in --to (ps shows it); write password_file=PATH into the URL, "
                     "or password: file:PATH into a file for --config") == 1
    assert "s3cr3t" not in err
    (shop.folder / "o.yaml").write_text("sources: [{name: s, store: 'sqlite:app.db'}]\n"
                                        "targets: [{name: e, to: 'redis://u:s3cr3t@127.0.0.1:1/'}]\n")
    assert "ps shows it" not in shop.run("relay", "--config", "o.yaml", "--once", code=None).err
    assert "(ps shows it)" in shop.run("doctor", "--to", "e=redis://u:s3cr3t@127.0.0.1:1/", code=None).err


def test_all_commands_are_there():
    assert set(COMMANDS) >= {
        "init", "sql", "realign", "upgrade", "drop", "truncate", "publish", "relay", "status", "list", "show", "requeue",
        "discard", "defer", "pause", "resume", "purge", "target list", "target drop", "policy list",
        "policy show", "tail", "audit", "doctor", "version", "help"}


def test_help_of_every_alert(bare):
    rules = [r["rule"] for r in bare.run("alerts", "--rules", "--json").json["rules"]]
    assert len(rules) > 10
    for rule in rules:
        text = bare.run("help", "alert", rule).out
        first, text = text.split("\n\n", 1)
        assert first == "# set SOURCE=... TARGET=... and OUTBOX_CONFIG=FILE first"
        assert text.startswith(f"## {rule}\n\n**Means** ") and "**Over** when" in text and text.count("\n## ") == 0
        told = bare.run("help", "alert", rule, "--json").json
        page = [line for line in told["section"].splitlines() if not line.startswith("```")]
        assert told["rule"] == rule
        assert "](" not in text
        page = re.sub(r"\[([^]\n]*)\]\([^)\n]*\)", r"\1", "\n".join(page))
        assert text.replace("\\\n", "").split() == page.split(), "the whole section, and nothing else"
    names = bare.run("help", "alert").out
    assert "outbox help alert NAME" in names
    listed = re.findall(r"^  (\w+)$", names, re.M)
    assert set(rules) <= set(listed) and listed == bare.run("help", "alert", "--json").json["alerts"]
    for name in listed:
        bare.run("help", "alert", name)
    told = bare.run("help", "alert", "Before you begin", code=2).err
    assert 'no alert is called "Before you begin"; outbox help alert lists them' in told


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(bare, name):
    text = bare.run(*name.split(), "--help").out
    for part in (f"outbox {name}", "usage:", "options:", "--json", "example:", "exit status"):
        assert part in text
    assert bare.run("help", *name.split()).out == text
    told = bare.run(*name.split(), "--help", "--json").json
    assert told["command"] == name
    for option in told["options"]:
        assert f"--{option['name']}" in text


@pytest.mark.parametrize("name", [c for c in COMMANDS if c.split()[0] not in ("completion", "config", "policy", "help", "version", "sql")])
def test_every_command_with_a_store_says_when_there_is_none(bare, name):
    extra = {"publish": ["--type", "t", "--data", "1"], "relay": ["--to", "e=null:"], "show": ["x"],
             "requeue": ["x"], "discard": ["x", "--reason", "r"], "defer": ["x", "--until", "+1m"],
             "pause": ["x", "--reason", "r"], "resume": ["x"], "purge": ["--delivered-before", "7d"],
             "archive": ["x"], "redact": ["x", "--reason", "r"], "cancel": ["x", "--reason", "r"], "keys": [], "amend": ["x", "--data", "1", "--reason", "r"], "replay": ["--from-log", "--target", "x", "--to", "null:"],
             "target drop": ["x", "--reason", "r"], "inbox prune": ["--older-than", "30d"]}.get(name, [])
    env = {k: v for k, v in bare.env.items() if k != "OUTBOX_STORE"}
    done = subprocess.run([BINARY, *name.split(), *extra], env=env, cwd=bare.folder, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 2
    assert "no store is given: use --store sqlite:app.db or --config outbox.yaml, or set OUTBOX_STORE or OUTBOX_CONFIG" in done.stderr


@pytest.mark.parametrize("args, text", [
    (["publsh"], 'unknown command "publsh"; did you mean publish?'),
    # what takes away is never the answer to a typing mistake
    (["dorp"], 'unknown command "dorp"; outbox help lists them'),
    (["trncate"], 'unknown command "trncate"; outbox help lists them'),
    (["tel"], 'unknown command "tel"; outbox help lists them'),
    (["purgee"], 'unknown command "purgee"; outbox help lists them'),
    (["discrad"], 'unknown command "discrad"; outbox help lists them'),
    (["redct"], 'unknown command "redct"; outbox help lists them'),
    (["xyzzy"], 'unknown command "xyzzy"; outbox help lists them'),
    (["target"], 'unknown command "target"; use outbox target list or target drop'),
    (["target", "dorp"], 'unknown command "target"; use outbox target list'),
    (["polic", "--help"], 'unknown command "polic"'),
    (["status", "--jsn"], "unknown option --jsn; did you mean --json?"),
    (["status", "-x"], "options are written with two dashes"),
    (["status", "--every"], "--every needs a value: --every DURATION"),
    (["status", "--every", "--watch"], "--every needs a value"),
    (["status", "--every", "soon"], '--every: "soon" is not a duration'),
    (["status", "--every", "0"], "--every: must be above 0; write a duration like 5s"),
    (["status", "--watch=yes"], "--watch takes no value"),
    (["status", "extra"], 'unexpected argument "extra"; outbox status takes options only'),
    (["list", "--limit", "0"], '--limit: "0" is not a whole number from 1 to 1000'),
    (["list", "--limit", "10", "--limit", "20"], "--limit was given twice"),
    (["list", "--state", "fialed"], '"fialed" is not valid; did you mean failed?'),
    (["list", "--state", "xyzzy"], "use pending, sending, delivered, failed or discarded, or a reason why it is pending: new"),
    (["list", "--state", "parkd"], "did you mean parked?"),
    (["list", "--why", "xyzzy"], "use new, retry, deferred, parked or paused"),
    (["list", "--why", "retry", "--state", "failed"], "--why applies only to pending deliveries"),
    (["show"], "ID is missing: outbox show ID"),
    (["show", "a", "b"], 'unexpected argument "b"; outbox show takes only ID'),
    (["publish", "--data", "1"], "--type is missing: --type TYPE"),
    (["publish", "--type", "t"], "--data is missing: --data JSON|@FILE|-"),
    (["defer", "x"], "--until is missing: --until TIME"),
    (["defer", "x", "--until", "later"], "--until"),
    (["pause", "events"], "--reason is missing"),
    (["discard", "x"], "--reason is missing"),
    (["purge"], "no age is given: use --delivered-before 7d"),
    (["purge", "--delivered-before", "foo"], '"foo" is neither an age nor a time; write 7d or 2026-'),
    (["defer", "x", "--until", "2020-01-01T00:00:00Z"], "--until is in the past"),
    (["--store", "sqlite:x", "status"], "options go after the command: outbox COMMAND --store"),
    (["init", "--lanes", "0"], '--lanes: "0" is not a whole number from 1 to 256\n'),
    (["publish", "--type", "t", "--data", "nojson"], "--data is not JSON (for other data give --content-type)"),
    (["publish", "--type", "t", "--data", "1", "--content-type", "x y"], '--content-type: "x y" is not a media type'),
    (["purge", "--delivered-before", "2999-01-01T00:00:00Z"], "is in the future"),
    (["requeue"], "nothing is selected: give ids, or filter by"),
    (["requeue", "x", "--state", "failed"], "give ids or a filter, not both"),
    (["requeue", "--why", "retry"], "unknown option --why"),
    (["requeue", "--state", "delivered"], "only failed deliveries can be requeued"),
    (["requeue", "--state", "failed", "--rate", "50/sec"], '"50/sec" is not a rate; write 50/s or 3000/min'),
    (["discard", "--reason", "r", "--target", "x"], "say which deliveries to discard"),
    (["relay"], "--to is missing: --to NAME=URL"),
    (["relay", "--to", "events"], '"events" is not NAME=VALUE'),
    (["relay", "--to", "Events=null:"], '"Events" is not a name; use a lower-case letter'),
    (["relay", "--to", "e=null:", "--order", "e=chaos"], '"chaos" is not one of strict, pipelined or none'),
    (["relay", "--to", "e=null:", "--envelope", "e=b"], '--envelope e: "b" is not one of structured, binary, native or external'),
    (["relay", "--to", "e=null:", "--to", "e=file:x"], '--to: target "e" is named twice'),
    (["relay", "--to", "e=null:", "--instance", "x" * 201], "outbox relay: instance: longer than 200 bytes"),
    (["relay", "--to", "e=null:", "--retain-failed", "0s"], "--retain-failed: must be above 0"),
    (["relay", "--to", "e=null:", "--hold", "x"], '--hold: there is no target "x"; there are: e'),
    (["relay", "--to", "events=null:", "--to", "b=null:", "--match", "evnts=x.*"],
     '--match: there is no target "evnts"; did you mean events?'),
    (["relay", "--to", "events=null:", "--start", "partner=now"], '--start: there is no target "partner"; there are: events'),
    (["relay", "--to", "e=null:", "--batch-bytes", "8MB"], '"8MB" is not a size; write 65536, 64KiB'),
    (["relay", "--to", "e=null:", "--lease", "1ms"], "--lease: must be between 100ms and 1h"),
    (["relay", "--to", "e=null:", "--dead-letter", "e=e", "--once"], "--dead-letter e: it leads back to this target"),
    (["relay", "--to", "e=null:", "--hold", "e", "--order", "e=none"], "--hold e: cannot be combined with order: none"),
    (["relay", "--to", "e=amqp://mq:99999/", "--once"], '--to e: the port: "99999" is not a whole number'),
    (["relay", "--to", "e=null:", "--once", "--until-idle"], "--once and --until-idle cannot be combined"),
    (["relay", "--to", "e=stdout:", "--json"], 'target "e" both write to stdout'),
    (["help", "publsh"], "did you mean publish?"),
    (["version", "--store", "x"], "unknown option --store"),
])
def test_mistakes_are_named_with_the_remedy(shop, args, text):
    ran = shop.run(*args, code=2)
    assert text in ran.err, str(ran)
    assert not ran.out or "--json" in args


def test_an_error_is_json_too(shop):
    ran = shop.run("show", "nobody", "--json", code=3)
    assert ran.json["error"]["status"] == "notfound"
    assert ran.json["error"]["exit"] == 3
    assert ran.json["error"]["message"] in ran.err
    assert shop.run("list", "--jsn", "--json", code=2).json["error"]["exit"] == 2


def test_options_take_their_values_either_way_and_words_may_begin_with_dashes(shop):
    shop.run("publish", "--type=a", "--data", "1", "--key=--odd", "--id", "odd-1")
    assert shop.run("show", "--json", "--", "odd-1").json["message"]["key"] == "--odd"


def test_exit_codes_are_the_documented_ones(bare):
    told = bare.run("help", "exits", "--json").json["exits"]
    assert {row["code"] for row in told} == EXITS
    text = bare.run("help", "exits").out
    for row in told:
        assert re.search(rf"^ *{row['code']}  {row['name']}", text, re.M)


def test_version(bare):
    told = bare.run("version", "--json").json
    assert re.fullmatch(r"\d+\.\d+\.\d+", told["version"])
    assert "sqlite" in told["stores"] and {"file", "stdout", "null"} <= set(told["transports"])
    text = bare.run("--version").out
    assert told["version"] in text and bare.run("-V").out == text
    assert "sqlite:" in text and "stdout:" in text and "memory" not in text + json.dumps(told)


def test_help_offers_the_states_that_are_legal(bare):
    assert "delivered" not in re.search(r"--state STATE(.*?)--target", bare.run("help", "requeue").out, re.S).group(1)
    assert "a word of --why" in " ".join(bare.run("help", "list").out.split())
    assert "everything leaves in log order" not in " ".join(bare.run("help", "init").out.split())
    assert "each key stays in order" in " ".join(bare.run("help", "init").out.split())
    assert "stands by" in bare.run("help", "relay").out


@pytest.mark.parametrize("url, code, text", [
    ("sqlite:missing.db", 3, "init"),
    ("nosuch:thing", 2, "no driver for it"),
    ("sqlite:app.db?speed=11", 2, "speed"),
    ("app.db", 2, "did you mean sqlite:app.db?"),
    ("./data/app.db", 2, "did you mean sqlite:./data/app.db?"),
    ("sqlite:nodir/app.db", 3, "folder nodir does not exist"),
    ("sqlite:.", 2, ". is a folder, not a database"),
])
def test_a_wrong_store_is_told(bare, url, code, text):
    ran = bare.run("status", "--store", url, code=code)
    assert text in ran.err


def test_only_drivers_that_the_program_can_use_are_offered(shop):
    for args in (["status", "--store", "nosuch:thing"], ["relay", "--to", "e=nosuch:thing", "--once"]):
        err = shop.run(*args, code=2).err
        assert "known: " in err and "memory:" not in err and "handler:" not in err
    assert "did you mean file:out.jsonl?" in shop.run("relay", "--to", "e=out.jsonl", "--once", code=2).err


def test_init_says_what_is_wrong_with_the_folder(bare):
    ran = bare.run("init", "--store", "sqlite:nodir/app.db", code=3)
    assert "folder nodir does not exist" in ran.err and "outbox init" not in ran.err.split(": ", 1)[1]
    closed = bare.folder / "closed"
    closed.mkdir(mode=0o555)
    # root may write anywhere, so that it has to be somebody else
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    for folder in list(bare.folder.parents)[:-2] + [bare.folder]:
        if other and folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    done = subprocess.run([BINARY, "init", "--store", f"sqlite:{closed}/app.db"], capture_output=True, text=True,
                          check=False, **other)
    assert (done.returncode, "no permission to create" in done.stderr) == (6, True), done.stderr


def test_a_database_without_an_outbox(bare):
    with bare.db() as db:
        db.execute("CREATE TABLE t (x INTEGER)")
    ran, store = bare.run("status", code=7), bare.env["OUTBOX_STORE"]
    assert f"there is no outbox in {store}; create one: outbox init --store {store}" in ran.err
    assert bare.run("doctor", code=1).out.count("error")


@pytest.mark.sqlite
def test_a_file_that_is_no_database(bare):
    bare.path.write_bytes(b"this is not a database " * 100)
    assert bare.run("status", code=14).err


def test_output_that_cannot_be_written_is_a_failure(shop):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BINARY, "help"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 8
    assert b"cannot write the output" in done.stderr


def test_passwords_never_show(bare):
    for args in (["relay", "--to", "amqp://relay:hunter2@mq/"], ["relay", "--to", "e=amqp://relay:hunter2@mq/"],
                 ["status", "--store", "postgres://app:hunter2@db/shop"],
                 ["doctor", "--store", "sqlite:x?password=hunter2"]):
        ran = bare.run(*args, code=None)
        assert ran.code and "hunter2" not in ran.err + ran.out, str(ran)


@pytest.mark.parametrize("args", [["policy", "--help"], ["policy", "-h"], ["help", "policy"]])
def test_a_family_of_commands_explains_itself(bare, args):
    text = bare.run(*args).out
    assert "usage: outbox policy list" in text and "usage: outbox policy show NAME" in text
    assert "outbox relay --policy NAME" in " ".join(text.split())
    assert "outbox target drop --reason TEXT TARGET" in bare.run("target", "--help").out
