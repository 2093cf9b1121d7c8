# SPDX-License-Identifier: Apache-2.0
"""What people see: colours only on a terminal, hostile text harmless, confirmation by typing."""
import os
import pty
import re
import subprocess
import unicodedata

import pytest

from shell import BINARY, UNSAFE

EVIL = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\r\n\x9b2J\u202eevil\x7f"
COLOUR = "\x1b["


def on_terminal(shop, *args, answer=None, env=None):
    """Run with a terminal as stdin, stdout and stderr; what it showed and its exit code."""
    master, slave = pty.openpty()
    process = subprocess.Popen([BINARY, *args], cwd=shop.folder, stdin=slave, stdout=slave, stderr=slave,
                               env={**shop.env, "TERM": "xterm", **(env or {})})
    os.close(slave)
    if answer is not None:
        os.write(master, answer.encode())
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    return process.wait(timeout=120), shown.decode()


def test_colours_only_on_a_terminal(shop):
    shop.fail()
    assert COLOUR in on_terminal(shop, "status")[1]
    assert COLOUR in on_terminal(shop, "list")[1]
    assert COLOUR not in on_terminal(shop, "status", env={"NO_COLOR": "1"})[1]
    assert COLOUR not in on_terminal(shop, "status", env={"TERM": "dumb"})[1]
    assert COLOUR not in on_terminal(shop, "status", "--json")[1]
    assert COLOUR not in shop.run("status", env={"TERM": "xterm"}).out


def test_drop_is_confirmed_by_typing_the_name(shop):
    shop.insert()
    code, shown = on_terminal(shop, "drop", answer="nonsense\n")
    assert code == 10 and f"Type its name ({shop.name}) to continue:" in shown and "nothing was changed" in shown
    assert shop.run("status", "--json").json["messages"] == 1
    code, shown = on_terminal(shop, "drop", answer="\n")
    assert code == 10
    code, shown = on_terminal(shop, "drop", answer=f"{shop.name}\n")
    assert code == 0 and "removed the outbox" in shown
    assert shop.run("status", code=7)


def test_a_bulk_requeue_is_confirmed_with_y(shop):
    shop.fail(2)
    code, shown = on_terminal(shop, "requeue", "--state", "failed", answer="n\n")
    assert code == 10 and "requeue 2 deliveries to events (oldest" in shown and "[y/N]" in shown
    assert on_terminal(shop, "requeue", "--state", "failed", answer="\n")[0] == 10
    code, shown = on_terminal(shop, "requeue", "--state", "failed", answer="y\n")
    assert code == 0 and "requeued 2 deliveries" in shown


def test_a_progress_bar_only_for_people(shop):
    shop.fail(2)
    shown = on_terminal(shop, "requeue", "--state", "failed", "--yes")[1]
    assert "requeued  2 of 2  [####################]  " in shown and "/s  0:00:00 left" in shown
    shop.relay(code=1)
    assert "[#" not in shop.run("requeue", "--state", "failed", "--yes").err


def test_hostile_text_does_nothing(shop):
    with shop.db() as db:  # the limits are on length, not on taste
        db.execute("INSERT INTO outbox_message (type, key, payload, subject, id, headers) "
                   "VALUES (?, ?, ?, ?, ?, ?)",
                   (f"t{EVIL}", f"k{EVIL}", f"{{broken {EVIL}", f"s{EVIL}", "evil-id", '{"h":"\\u001b[31m"}'))
    shop.relay(code=1)
    for args in (["list"], ["list", "--state", "failed"], ["show", "evil-id"], ["show", "evil-id", "--full"],
                 ["status"], ["doctor"], ["audit"]):
        ran = shop.run(*args, code=None)  # run() looks for control characters in all output
        assert ran.code in (0, 1)
    shown = on_terminal(shop, "show", "evil-id", env={"NO_COLOR": "1"})[1].replace("\r\n", "\n")
    assert not UNSAFE.search(shown)
    assert "\\x1b" in shown and "\\u202e" in shown
    told = shop.run("show", "evil-id", "--json")
    assert told.json["message"]["key"] == f"k{EVIL}"
    assert "\x1b" not in told.out


def test_hostile_ids_and_reasons(shop):
    message = shop.insert(id=f"a b';{EVIL}", payload="{broken")
    shop.relay(code=1)
    shop.run("discard", message, "--reason", EVIL, "--actor", EVIL)
    for args in (["list"], ["show", message], ["audit"]):
        shop.run(*args)
    assert shop.run("show", f"{EVIL}nobody", code=3).err
    assert shop.run("list", "--state", EVIL, code=2).err
    assert shop.run(f"x{EVIL}", code=2).err
    assert shop.run("status", f"--{EVIL}", code=2).err


@pytest.mark.sqlite
def test_text_that_is_not_utf8(shop):
    with shop.db() as db:
        db.execute("INSERT INTO outbox_message (type, key, payload, id) VALUES "
                   "(CAST(x'74ff' AS TEXT), CAST(x'6bfe' AS TEXT), CAST(x'ff' AS TEXT), 'raw')")
    shop.relay(code=None)
    assert "\\xff" in shop.run("list").out
    assert "t\ufffd" == shop.run("list", "--json").json["deliveries"][0]["type"]


def piped(shop, *args, **env):
    env = {**{k: v for k, v in shop.env.items() if k != "COLUMNS"}, **env}
    return subprocess.run([BINARY, *args], cwd=shop.folder, env=env, capture_output=True, text=True, check=True).stdout


def test_nothing_is_cut_for_a_pipe(shop):
    text = "x" * 200
    shop.insert(type=f"t.{text}", key=f"k{text}", id=text, payload="{broken" + text)
    shop.relay(code=1)
    shown = piped(shop, "list")
    assert f"t.{text}" in shown and f"k{text}" in shown and "..." not in shown
    assert f"  {text}  " not in piped(shop, "list", COLUMNS="100")
    assert f"t.{text}" in piped(shop, "show", text)
    # on a screen a long word is broken, not cut
    assert text in "".join(piped(shop, "show", text, COLUMNS="80").split())


@pytest.mark.parametrize("columns", ["40", "60", "79", "100", "nonsense"])
def test_list_fits_narrow_screens(shop, columns):
    message = shop.insert(type="order.placed", key="12345678", payload="{broken")
    shop.relay(code=1)
    shown = on_terminal(shop, "list", env={"COLUMNS": columns, "NO_COLOR": "1"})[1].replace("\r\n", "\n")
    width = int(columns) if columns.isdigit() else 80
    assert message in shown and "SINCE" in shown
    if width >= 60:
        assert max(len(line) for line in shown.splitlines()) <= width, shown
    assert ("KEY" in shown) == (width >= 79)


@pytest.mark.parametrize("text", ["x" * 200, "\u6f22\u5b57" * 50, "e\u0301" * 100])
def test_long_cells_are_cut_to_the_screen(shop, text):
    shop.insert(type=f"t.{text}", key=text, id=text[:100], payload="{broken" + text)
    shop.relay(code=1)
    for args in (["list"], ["list", "--state", "failed"], ["show", text[:100]], ["status"]):
        done = subprocess.run([BINARY, *args], cwd=shop.folder, env=shop.env, capture_output=True, check=False)
        for line in done.stdout.decode().splitlines():
            wide = sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
                       for c in line)
            assert wide <= 80 or re.search(r"outbox (requeue|discard|amend)|^message ", line), f"{wide}: {line}"


def test_the_environment_chooses_the_store(shop):
    told = shop.run("status", "--json", "--store", shop.url).json
    assert told["store"] == shop.run("status", "--json").json["store"] == shop.name
