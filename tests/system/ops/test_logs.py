# SPDX-License-Identifier: Apache-2.0
"""What a relay says: one vocabulary, documented, safe to read, and without secrets."""
import os
import pathlib
import re

from shell import Shop

ROOT = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).resolve().parents[3]))


def in_the_code():
    rows = re.findall(r'\[(EVENT_\w+)\] = \{ "([a-z.]+)", OUTBOX_LOG_([A-Z]+) \}', (ROOT / "src/base/log.c").read_text())
    assert len(rows) > 20
    return rows


def test_the_document_has_every_event_and_no_other():
    written = re.findall(r"^\| `([a-z.]+\.[a-z]+)` \| (\w+) \|", (ROOT / "docs/logs.md").read_text(), re.M)
    assert sorted(written) == sorted((name, level.lower()) for _, name, level in in_the_code())


def test_every_event_is_used():
    code = "".join(path.read_text() for path in (ROOT / "src").rglob("*.c") if path.name != "log.c")
    assert [event for event, _, _ in in_the_code() if event not in code] == []


def test_control_characters_of_others_are_escaped(tmp_path):
    """A target's URL with an escape sequence in it, which a terminal would obey."""
    shop = Shop(tmp_path)
    shop.run("init")
    shop.insert()
    ran = shop.run("relay", "--to", "events=file:/nowhere/\x1b[2J\x07.jsonl", "--once", code=None)
    assert "\x1b" not in ran.err and "\x07" not in ran.err


def test_refused_messages_are_told_once_a_minute(tmp_path):
    """However many there are: the first at once, the rest with the minute or at the end."""
    shop = Shop(tmp_path)
    shop.run("init")
    for i in range(20):
        shop.insert(payload="{broken mark-1", key=f"mark-{i}")
    (tmp_path / "outbox.yaml").write_text('sources: [ { name: shop, store: "sqlite:app.db" } ]\n'
                                          'targets: [ { name: events, to: "file:out.jsonl", batch: 1, start: oldest } ]\n')
    ran = shop.run("relay", "--config", "outbox.yaml", "--until-idle", code=None, people=False)
    told = [int(n) for n in re.findall(r"message\.refused .*? (\d+) refusals?, the last one of", ran.err)]
    assert sum(told) == 20 and len(told) <= 2, ran
    assert "mark" not in ran.err
