# SPDX-License-Identifier: Apache-2.0
"""A password is *** in every answer, page and line, whichever way it got there, and nothing else ever stands for one."""
import re

import pytest

from console import Console
from places import bare_place
from shell import Shop, until

STORE, TARGET, QUOTED = "pw-store-3f9a", "pw-target-81cc", "pw-quoted-5d20"
# where a password stands: in a URL, in an option, in what a driver quotes of its own
STANDS = re.compile(r"(?:://[a-z]+:|[?&]password=|/nowhere/)([^@&/\s\"]+)(?=[@&/\s\"]|$)")


def masks(text):
    """What stands in place of each password in it; never a password."""
    for secret in (STORE, TARGET, QUOTED):
        assert secret not in text, text
    return set(STANDS.findall(text))


FILE = """
sources:
  - {{ name: shop, store: "{store}" }}
  - {{ name: away, store: "postgres://app:{STORE}@127.0.0.1:1/shop" }}
  - {{ name: option, store: "postgres://app@127.0.0.1:1/shop?password={STORE}" }}
  - {{ name: beside, store: "postgres://app@127.0.0.1:1/shop", password: {STORE} }}
targets:
  - {{ name: redis, to: "redis://relay:{TARGET}@127.0.0.1:1/" }}
  - {{ name: beside, to: "amqp://relay@127.0.0.1:1/?exchange=x", password: {TARGET} }}
  - {{ name: kafka, to: "kafka://relay:{TARGET}@127.0.0.1:1/x" }}
  - {{ name: nats, to: "nats://relay:{TARGET}@127.0.0.1:1/x" }}
{more}
"""


def write(shop, store, more=""):
    (shop.folder / "masks.yaml").write_text(FILE.format(store=store, more=more, STORE=STORE, TARGET=TARGET))
    (shop.folder / "masks.yaml").chmod(0o600)


def test_configuration(tmp_path):
    shop = Shop(tmp_path)
    write(shop, "sqlite:app.db")
    for form in ((), ("--json",)):
        shown = shop.run("config", "show", "masks.yaml", *form, env={"COLUMNS": "200"}, people=False).out
        assert masks(shown) == {"***"}
        # the word alone, and with the URL around it
        assert len(re.findall(r"postgres://app:\*\*\*@127", shown)) == 1
        assert len(re.findall(r"(?:redis|kafka|nats)://relay:\*\*\*@127", shown)) == 3
        assert len(re.findall(r"[\s\"]\*\*\*[\s\"]", shown)) == 2, "password: of a source and of a target"
    # what is wrong with it is told
    write(shop, f"oracle://app:{STORE}@db/x", f'  - {{ name: bad, to: "amqps://relay:{TARGET}@mq/%zz" }}')
    told = shop.run("config", "check", "masks.yaml", code=2).err
    assert masks(told) == {"***"} and "amqps://relay:***@mq/%zz" in told


@pytest.mark.parametrize("args", [
    ["status", "--store", f"oracle://app:{STORE}@db/x"], ["status", "--store", f"postgres://app:{STORE}@db/%zz"],
    ["status", "--store", f"sqlite:x.db?password={STORE}"], ["relay", "--to", f"redis://relay:{TARGET}@mq/"],
    ["relay", "--to", f"e=amqp://relay:{TARGET}@mq/%zz"], ["doctor", "--to", f"e=gopher://relay:{TARGET}@mq/"],
])
def test_a_command_that_quotes_its_options(tmp_path, args):
    shop = Shop(tmp_path)
    shop.run("init")
    for form in [(), ("--json",)][:1 if args[0] == "relay" else 2]:
        ran = shop.run(*args, *form, code=None)
        # an option that a driver does not know is named without its value
        assert ran.code and masks(ran.out + ran.err) == (set() if "sqlite:" in args[2] else {"***"}), str(ran)


def test_suggested_commands(tmp_path, request):
    shop = bare_place("postgres", tmp_path, request)
    url = shop.url.replace("@", f":{STORE}@")
    for args in (["init"], ["status"]):
        said = " ".join(shop.run(*args, "--store", url).out.split())
        assert masks(said) == {"***"} and "--store 'postgres://postgres:***@127.0.0.1" in said


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_daemon_and_all_that_ask(kind, tmp_path, request):
    shop = bare_place(kind, tmp_path, request)
    url = shop.url.replace("@", f":{STORE}@") if kind == "postgres" else shop.url
    console = Console(tmp_path, stores={"shop": url}, targets=("events",), more="log: { level: debug }\nrelay: { breaker_max: 1s }\n")
    console.config.write_text(console.config.read_text().replace("targets:", f"""\
  - {{ name: away, store: "postgres://app:{STORE}@127.0.0.1:1/shop" }}
targets:
  - {{ name: redis, to: "redis://relay:{TARGET}@127.0.0.1:1/" }}
  - {{ name: later, to: "redis://relay:{QUOTED}@127.0.0.1:1/" }}
  - {{ name: quoting, to: "file:/nowhere/{QUOTED}/x.jsonl" }}"""))
    console.config.chmod(0o600)
    shop.insert()
    console.up(whole=False)
    try:
        def outages():
            with shop.db() as db:
                return [row[0] for row in db.execute("SELECT outage FROM outbox_worker WHERE outage IS NOT NULL").fetchall()]

        until(lambda: any("nowhere" in text for text in outages()), "the outage of the quoting target")
        assert masks("\n".join(outages())) == {"***"}, "what is in the store has none either"
        until(lambda: "nowhere" in console.get("/api/alerts").body.decode(), "its alert")
        for path in ("/api/outbox", "/api/targets", "/api/alerts"):
            assert masks(console.get(path).body.decode()) == {"***"}, path
        for path in ("/api/lanes", "/api/messages", "/api/audit"):
            assert masks(console.get(path, source="shop").body.decode()) <= {"***"}, path
        assert masks(console.get("/metrics").body.decode()) <= {"***"}
        # other processes, which have not heard the passwords; some are told the file, some the store alone
        file = ("--config", "outbox.yaml")
        alone = ("--store", shop.url)
        for args in (["status", *file], ["status", *file, "--json"], ["status", *alone], ["status", *alone, "--json"],
                     ["alerts", *file], ["alerts", *alone, "--json"], ["doctor", *alone], ["doctor", *alone, "--json"],
                     ["doctor", *file, "--source", "shop", "--brokers"], ["doctor", *file, "--source", "shop", "--brokers", "--json"]):
            ran = console.run(*args, code=None, people=False)
            assert masks(ran.out + ran.err) == {"***"}, str(ran)
        for args in (["list", *alone, "--json"], ["target", "list", *alone, "--json"], ["audit", *alone, "--json"]):
            ran = console.run(*args, people=False)
            assert masks(ran.out + ran.err) <= {"***"}, str(ran)
    finally:
        console.down()
    log = (tmp_path / "relay.log").read_text()
    assert masks(log) == {"***"}
    assert "redis (redis://relay:***@127.0.0.1:1/)" in log and "quoting (file:/nowhere/***/x.jsonl)" in log
    if kind == "postgres":
        assert re.search(r"relay\.start shop: postgres://postgres:\*\*\*@127", log)
