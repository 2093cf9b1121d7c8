# SPDX-License-Identifier: Apache-2.0
"""The man pages: every command in them runs as it stands, and none of the options is missing."""
import os
import pathlib
import re
import subprocess

import pytest

from shell import BINARY, PATIENCE

FOLDER = pathlib.Path(os.environ.get("OUTBOX_MAN") or pathlib.Path(__file__).parents[3] / "docs" / "man")
PAGES = sorted(FOLDER.glob("*.scd"))


def commands(page):
    """The lines of the literal block after `$ `, with their continuations."""
    block = re.search(r"^```\n(.*?)^```$", page.read_text(), re.M | re.S).group(1).replace("\\\\", "\\")
    assert block.startswith("$ ")
    return [part.strip() for part in re.split(r"^\$ ", block, flags=re.M) if part.strip()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples_run_as_they_stand(bare, page):
    (bare.folder / "outbox").symlink_to(os.path.abspath(BINARY))
    env = {**bare.env, "PATH": f"{bare.folder}:{bare.env['PATH']}"}
    env.pop("OUTBOX_STORE")
    script = "set -e\n" + "\n".join(commands(page))
    done = subprocess.run(["bash", "-c", script], cwd=bare.folder, env=env, capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert done.returncode == 0, script + done.stdout + done.stderr


def test_every_command_and_option_is_documented(bare):
    text = "".join(page.read_text() for page in PAGES).replace("\\", "")
    for command in bare.run("help", "--json").json["commands"]:
        assert f"*{command['name']}*" in text or f"*outbox {command['name']}*" in text, command["name"]
        for option in bare.run("help", *command["name"].split(), "--json").json["options"]:
            assert f"--{option['name']}" in text, f"{command['name']} --{option['name']}"


def test_every_option_of_the_man_pages_exists(bare):
    known = {"help", "json"}
    for command in bare.run("help", "--json").json["commands"]:
        known |= {o["name"] for o in bare.run("help", *command["name"].split(), "--json").json["options"]}
    for page in PAGES:
        for name in re.findall(r"--([a-z][a-z-]+)", page.read_text()):
            assert name in known, f"{page.name}: --{name}"


def test_the_exit_codes_are_the_programs_own(bare):
    text = (FOLDER / "outbox.1.scd").read_text()
    documented = re.findall(r"^\*(\d+)\* (\w+)\n\t(.*)$", text, re.M)
    told = bare.run("help", "exits", "--json").json["exits"]
    assert documented == [(str(row["code"]), row["name"], row["meaning"]) for row in told]
