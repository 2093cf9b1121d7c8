# SPDX-License-Identifier: Apache-2.0
"""relay.archive: what a relay's own retention removes is archived first."""
import json
import pathlib
import re
import subprocess

from shell import end, until

CONFIG = """
sources:
  - {{name: shop, store: "{url}"}}
targets:
  - {{name: ev, to: "file:o"}}
  - {{name: part, to: "file:p", match: {{type: ["zzz.*"]}}}}
  - {{name: morgue, to: "file:m", match: {{nothing: true}}}}
relay: {{retain_delivered: 100ms, purge_interval: 100ms, archive: old}}
"""


def archived(shop):
    ids = []
    for path in sorted((shop.folder / "old").glob("*.jsonl.zst")):
        done = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True)
        ids += [json.loads(line)["id"] for line in done.stdout.splitlines()]
    return ids


def messages(shop):
    return shop.run("status", "--json").json["messages"]


def test_retention_archives_what_it_removes(bare):
    (bare.folder / "outbox.yaml").write_text(CONFIG.format(url=bare.url))
    bare.run("init")
    ids = [f"m{i}" for i in range(30)]
    for i in ids:
        bare.run("publish", "--id", i, "--type", "zzz.a" if i == "m3" else "order.placed", "--data", "{}")
    log = bare.folder / "log"
    with log.open("w") as said:
        relay = bare.start("relay", "--config", "outbox.yaml", stderr=said)
    try:
        until(lambda: "; nothing is removed" in log.read_text(), "a complaint about the folder")
        assert not (bare.folder / "old").exists() and messages(bare) == 30
        (bare.folder / "old").mkdir()
        until(lambda: messages(bare) == 0, "retention")
        until(lambda: "clean-up works again" in log.read_text(), "the end of it")
    finally:
        relay.terminate()
        relay.communicate()
    assert sorted(archived(bare)) == sorted(ids)
    assert not list((bare.folder / "old").glob("*.part-*"))
    first = sorted((bare.folder / "old").glob("*.jsonl.zst"))[0]
    bare.run("replay", first, "--target", "ev", "--to", "file:again", "--yes")
    assert bare.lines("again")


def test_the_configuration_of_the_readme_purges(bare):
    readme = (pathlib.Path(__file__).parents[3] / "README.md").read_text()
    text = re.search(r"```yaml\n(# outbox.yaml\n.*?)^admin:", readme, re.S | re.M).group(1)
    text = re.sub(r'store: "[^"]*"\n *password: .*', f'store: "{bare.url}"', text)
    text = re.sub(r'to: "(?:amqp|redis)[^"]*"(?:\n *password: .*)?', 'to: "file:out.jsonl"', text)
    (bare.folder / "outbox.yaml").write_text(text + "relay: {retain_delivered: 100ms, purge_interval: 100ms}\n")
    bare.run("init")
    for kind in ("order.placed", "stock.low"):
        bare.run("publish", "--type", kind, "--data", "{}")
    relay = bare.start("relay", "--config", "outbox.yaml")
    try:
        until(lambda: len(bare.lines()) == 2 and messages(bare) == 0, "retention")
    finally:
        end(relay)


def test_a_crash_archives_twice_and_loses_nothing(bare):
    (bare.folder / "outbox.yaml").write_text(CONFIG.format(url=bare.url))
    (bare.folder / "old").mkdir()
    bare.run("init")
    ids = [f"m{i}" for i in range(5)]
    for i in ids:
        bare.run("publish", "--id", i, "--type", "order.placed", "--data", "{}")
    bare.env["OUTBOX_FAILPOINT"] = "after_archive:kill:1"
    relay = bare.start("relay", "--config", "outbox.yaml")
    until(lambda: relay.poll() is not None or messages(bare) == 0, "the relay to die")  # it lives where it has no failpoints
    end(relay)
    before = archived(bare)
    del bare.env["OUTBOX_FAILPOINT"]
    relay = bare.start("relay", "--config", "outbox.yaml", "--set", "relay.lease=1s")
    try:
        until(lambda: messages(bare) == 0, "retention")
    finally:
        end(relay)
    assert set(archived(bare)) == set(ids) >= set(before)
