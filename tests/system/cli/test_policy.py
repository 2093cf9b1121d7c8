# SPDX-License-Identifier: Apache-2.0
"""The presets print the numbers that their systems document."""
import pytest

DELAYS = {
    "hermodr": [30, 60, 120, 300],
    "blueprint": [5, 10, 20, 40, 80, 160, 320, 640, 900],
    "protean": [60, 120],
    "opinionated": [2, 4, 8, 16],
    "webhooks": [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400],
    "default": [1, 2, 4, 8, 16, 32, 64, 128, 256],
}


@pytest.mark.parametrize("name", DELAYS)
def test_delays(bare, name):
    told = bare.run("policy", "show", name, "--json").json
    assert [d["delay"] for d in told["delays"]] == DELAYS[name]
    assert told["total"] == sum(DELAYS[name])
    for d in told["delays"]:
        by = d["delay"] * told["jitter_percent"] / 100
        assert (d["min"], d["max"]) == (d["delay"] - by, d["delay"] + by)


def test_what_else_a_preset_fixes(bare):
    told = {p["name"]: p for p in bare.run("policy", "list", "--json").json["policies"]}
    assert set(told) == set(DELAYS)
    assert (told["protean"]["jitter_percent"], told["protean"]["lease"]) == (25, 300)
    assert told["protean"]["retain_delivered"] == 168 * 3600
    assert told["protean"]["retain_failed"] == 720 * 3600
    assert (told["blueprint"]["poll"], told["blueprint"]["batch"]) == (5, 20)
    assert (told["opinionated"]["poll"], told["opinionated"]["batch"]) == (1, 50)
    assert told["opinionated"]["retain_failed"] == "forever"
    assert told["opinionated"]["purge_interval"] == 3600


def test_people_read_every_delay(bare):
    text = bare.run("policy", "show", "protean").out
    assert "45s to 1m15s" in text and "1m30s to 2m30s" in text
    assert "then failed: after 3 attempts and 3m (2m15s to 3m45s)" in text
    assert "protean" in bare.run("policy", "list").out


def test_unknown(bare):
    assert 'no policy "protaen"; did you mean protean?' in bare.run("policy", "show", "protaen", code=3).err
    assert "there are: default, hermodr" in bare.run("policy", "show", "xyzzy", code=3).err
