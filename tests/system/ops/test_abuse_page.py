# SPDX-License-Identifier: Apache-2.0
"""docs/internals/abuse.md promises a test for each abuse: it is there."""
import os
import pathlib
import re

import pytest

import test_http_hostile

ROOT = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).parents[3]))
ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \| (.*) \|$", (ROOT / "docs" / "internals" / "abuse.md").read_text(), re.M)
PROMISES = [(abuse, named) for abuse, named in ROWS if abuse not in ("abuse", "---")]


@pytest.mark.parametrize("abuse, named", PROMISES)
def test_is_tried(abuse, named):
    match = re.fullmatch(r"`(tests/[\w/.]+)::(\w+)(?:\[(.+)\])?`", named)
    assert match, f"{abuse}: {named} names no test"
    path, name, row = match.groups()
    assert re.search(rf"^(?:def|static void) {name}\(", (ROOT / path).read_text(), re.M), f"{path} has no {name}"
    assert row is None or row in test_http_hostile.ROWS, f"{path} has no row {row!r}"


def test_there_are_promises():
    assert len(PROMISES) > 40
