# SPDX-License-Identifier: Apache-2.0
"""completion: a person's shell completes commands, options, words and files."""
import os
import pty
import re
import shutil
import subprocess
import time

import pytest

from shell import PATIENCE

START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='ready> '; bind 'set bell-style none'; source script"),
    "zsh": (["zsh", "-f", "-i"], "PS1='ready> '; autoload -U compinit; compinit -u -D; unsetopt beep; source script"),
    "fish": (["fish", "--no-config", "-i"], "function fish_prompt; echo 'ready> '; end; source script"),
}
# typed, Tab at the end of it: the words that the shell then runs
TYPED = [
    ("outbox publ\t", ["publish"]),
    ("outbox conf\tche\t", ["config", "check"]),
    ("outbox publish --kind com\t", ["publish", "--kind", "command"]),
    ("outbox publish --skip\t", ["publish", "--skip-invalid"]),
    ("outbox publish --from ord\t", ["publish", "--from", "orders.jsonl"]),
    ("outbox archive ord\t", ["archive", "orders.jsonl"]),
    ("outbox list --state disc\t", ["list", "--state", "discarded"]),
    ("outbox list --store x --key y --sta\tfai\t", ["list", "--store", "x", "--key", "y", "--state", "failed"]),
    ("outbox target dr\t", ["target", "drop"]),
    ("outbox completion fi\t", ["completion", "fish"]),
    ("outbox help redac\t", ["help", "redact"]),
]


class Terminal:
    """A shell in a folder, and somebody who types."""

    def __init__(self, folder, args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="dumb", HOME=str(folder), HISTFILE="/dev/null")
            os.execvp(args[0], args)
        self.seen = b""

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, mark):
        deadline = time.monotonic() + PATIENCE
        while mark not in self.seen:
            assert time.monotonic() < deadline, f"no {mark!r} in {self.seen!r}"
            self.seen += os.read(self.fd, 4096)
        before, self.seen = self.seen.split(mark, 1)
        return before

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


@pytest.fixture(params=["bash", "zsh"])
def terminal(bare, request):
    name = request.param
    if not shutil.which(name):
        pytest.skip(f"no {name} on this machine (Debian: {name})")
    (bare.folder / "script").write_text(bare.run("completion", name, people=False).out)
    (bare.folder / "orders.jsonl").write_text("")
    # what is run at the end tells the words that it got; the shell completes for this name
    (bare.folder / "outbox").write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\necho '<<end'\n")
    (bare.folder / "outbox").chmod(0o755)
    args, first = START[name]
    made = Terminal(bare.folder, args)
    made.type(f"PATH=$PWD:$PATH; {first}; echo all''set\n")
    made.until(b"allset")
    yield made
    made.close()


def test_what_is_typed_becomes_whole_words(terminal):
    for typed, words in TYPED:
        terminal.type(typed)
        terminal.type("\n")
        ran = re.findall(r"<([^<>]*)>", terminal.until(b"<<end").decode("utf-8", "replace"))
        assert ran == words, typed


def test_fish(bare):
    if not shutil.which("fish"):
        pytest.skip("no fish on this machine (Debian: fish)")
    (bare.folder / "script").write_text(bare.run("completion", "fish", people=False).out)
    (bare.folder / "orders.jsonl").write_text("")
    for typed, words in TYPED:
        line = typed.split("\t")[0] if typed.count("\t") == 1 else " ".join(["outbox", *words[:-1], words[-1][:2]])
        done = subprocess.run(["fish", "--no-config", "-c", f"source script; complete -C '{line}'"], cwd=bare.folder,
                              capture_output=True, text=True, env={**os.environ, "HOME": str(bare.folder)}, check=True)
        found = [row.split("\t")[0] for row in done.stdout.splitlines()]
        assert words[-1] in found, (line, found, done.stderr)


def test_every_command_and_option_is_there(bare):
    scripts = {shell: bare.run("completion", shell, people=False).out for shell in ("bash", "zsh", "fish")}
    for command in bare.run("help", "--json").json["commands"]:
        for option in bare.run("help", *command["name"].split(), "--json").json["options"]:
            for shell in ("bash", "zsh"):
                line, = re.findall(rf"^\t'{command['name']}'\) options='([^']*)'", scripts[shell], re.M)
                assert f"--{option['name']}" in line.split(), (shell, command["name"])
            assert f"'__outbox_at {command['name']}' -l {option['name']} " in scripts["fish"]
    assert "there are: bash, zsh, fish" in bare.run("completion", "csh", code=2).err
