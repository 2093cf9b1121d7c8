# SPDX-License-Identifier: Apache-2.0
"""Every row of the page's table of statuses, answered by a real nginx."""
import email.utils
import re
import time

import pytest

from servers import LOOPBACK, page_table, probe, verdicts

CODES = page_table("Statuses")


def codes_of(cell):
    """'408, 409' or '500 to 599': those that the row is about."""
    first, last = re.fullmatch(r"(\d+)(?: to (\d+))?", cell).groups()
    return sorted({int(first), int(last or first)})


@pytest.fixture(scope="module")
def server(nginx):
    codes = {code for row in CODES for code in codes_of(row[0])} | {204, 413, 415, 422, 400, 500}
    places = "".join(f'location = /{code} {{ return {code} "says {code}"; }}\n' for code in sorted(codes)
                     if 200 <= code < 600 and not 300 <= code < 400)
    places += "".join(f"location = /{code} {{ return {code} https://else.example/there; }}\n" for code in (301, 302, 307))
    date = email.utils.formatdate(time.time() + 1000, usegmt=True)
    return nginx(f"""listen PORT; client_max_body_size 2m;
        {places}
        location = /small {{ client_max_body_size 1k; return 204; }}
        location = /busy {{ add_header Retry-After 7 always; return 429; }}
        location = /away {{ add_header Retry-After "{date}" always; return 503; }}
        location = /later {{ add_header Retry-After 99 always; return 500; }}
        location = /odd {{ add_header Retry-After "soon" always; return 429; }}
        location = /limited {{ limit_except GET {{ deny all; }} return 204; }}""").ports[0]


@pytest.mark.parametrize("row", CODES, ids=[row[0] for row in CODES])
def test_every_row(server, row):
    status, verdict, target = row[0], row[1], row[2]
    for code in codes_of(status):
        if not 200 <= code < 600 or 300 <= code < 400 and code not in (301, 302, 307):
            continue  # no nginx says that: test_hostile.py and test_redirects do
        said = probe(f"http://127.0.0.1:{server}/{code}#{LOOPBACK}", 1)
        wanted = "UNSET" if verdict == "-" else verdict
        assert verdicts(said) == [wanted], (code, said)
        assert said["publish"] == ("ok" if target == "-" else target.lower()[1:]), (code, said)
        item = said["items"][0]
        assert verdict == "-" or item["native"] == code
        if wanted in ("REJECTED", "RETRY"):
            assert item["reason"].startswith(f"{code}: says {code}") and item["answer"] == f"says {code}", item
        if target != "-":
            assert f"{code}: says {code}" in said["error"], said


def test_redirects_are_not_followed(server):
    for code in (301, 302, 307):
        said = probe(f"http://127.0.0.1:{server}/{code}#{LOOPBACK}")
        assert verdicts(said) == ["REJECTED"] and "else.example" in said["items"][0]["reason"], said
        assert "/there" not in said["items"][0]["reason"]


def test_a_body_that_is_too_large(server):
    said = probe(f"http://127.0.0.1:{server}/small#{LOOPBACK}", 1, size=3000)
    assert verdicts(said) == ["REJECTED"] and said["items"][0]["native"] == 413, said
    assert verdicts(probe(f"http://127.0.0.1:{server}/small#{LOOPBACK}")) == ["ACKED"]
    # nginx closes the connection on us while we are still sending
    said = probe(f"http://127.0.0.1:{server}/small#{LOOPBACK}", 1, size=5_000_000)
    assert verdicts(said) in (["REJECTED"], ["UNKNOWN"]), said


def test_forbidden_method(server):
    said = probe(f"http://127.0.0.1:{server}/limited#{LOOPBACK}", 3)
    assert said["publish"] == "auth" and "ACKED" not in verdicts(said), said


def test_retry_after(server):
    said = probe(f"http://127.0.0.1:{server}/busy#{LOOPBACK}", 20)
    assert said["publish"] == "full" and said["back_off"] == 7 and set(verdicts(said)) == {"UNSET"}, said
    said = probe(f"http://127.0.0.1:{server}/away#{LOOPBACK}", 20)
    assert said["publish"] == "full" and 900 < said["back_off"] <= 1000, said
    assert set(verdicts(said)) == {"UNKNOWN", "UNSET"}, said
    said = probe(f"http://127.0.0.1:{server}/later#{LOOPBACK}", 2)
    assert said["publish"] == "ok" and [i["retry_after"] for i in said["items"]] == [99, 99], said
    assert probe(f"http://127.0.0.1:{server}/odd#{LOOPBACK}")["back_off"] == 0


def test_many(server):
    assert verdicts(probe(f"http://127.0.0.1:{server}/204#{LOOPBACK}", 1000)) == ["ACKED"] * 1000
