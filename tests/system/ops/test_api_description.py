# SPDX-License-Identifier: Apache-2.0
"""The description at /api/openapi.json against the real server, judged by openapi-core, which knows nothing of us:
every route, what succeeds and what is refused."""
import copy
import os
import pathlib
import re

import pytest

from console import TOKENS, Console
from fetch import fetch
from judge import Judge
from shell import until

PACKAGE = "openapi-core==0.19.5"
UNKNOWN = (401, 429)  # who has no token, and who has tried it too often
ROUTES = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).parents[3])) / "src/http/routes.c"


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    made = Console(tmp_path_factory.mktemp("described"), sources=("shop",), targets=("events", "partner"))
    made.ids = [made.insert(payload="{broken", key=f"k{i}") for i in range(6)]
    made.fine = made.insert(key="fine", headers='{"a": "b"}', priority=1)
    made.insert()  # has nothing but what it must have
    made.up()
    until(lambda: made.states() == {"failed": 12, "delivered": 4}, "deliveries")
    yield made
    made.down()


@pytest.fixture(scope="module")
def judge(console):
    """Judges by the server's own description, which must be a valid one."""
    made = Judge(packages(), console.get("/api/openapi.json").json)
    yield made
    made.close()


def packages():
    folder = fetch(PACKAGE, "openapi_core")
    if not folder:
        pytest.skip(f"{PACKAGE} could not be had with pip: the description is not checked against the server here")
    return folder


def check(console, judge, method, path, **how):
    """Ask, and let the description judge the answer."""
    answer = console.ask(method, path, **how)
    wrong = judge.answer(method, path, answer)
    assert wrong is None, f"{method} {path}: {wrong}\n{answer}"
    return answer


def test_the_description_has_every_route_and_no_other(judge):
    table = set(re.findall(r'"(/(?:[a-z][^" ]*)?)"', ROUTES.read_text()))
    assert table == set(judge.spec["paths"]) and len(table) > 20


def test_every_route_is_there_and_wants_what_is_said(console, judge):
    for path, methods in judge.spec["paths"].items():
        real = path.replace("{id}", console.fine).replace("{name}", "events")
        for method, operation in methods.items():
            refused = console.ask(method.upper(), real, token=None, body={} if method == "post" else None)
            assert (refused.status in UNKNOWN) == bool(operation.get("security")), f"{method} {path}: {refused}"
            if operation["x-role"] == "operate":
                refused = console.ask(method.upper(), real, token="rob", body={} if method == "post" else None)
                assert refused.status == 403, f"{method} {path}: {refused}"
        other = "POST" if "get" in methods else "GET"
        if not (other == "GET" and path.startswith("/api/messages/")):  # GET /api/messages/requeue is a message's name
            assert console.ask(other, real, body={} if other == "POST" else None).status in (403, 405), path
    assert console.ask("GET", "/api/none").status == 404


LOOKS = ["/", "/healthz", "/livez", "/readyz", "/metrics", "/api/outbox", "/api/targets", "/api/targets?source=shop&target=events",
         "/api/lanes", "/api/alerts", "/api/config", "/api/messages", "/api/messages?state=failed&limit=2",
         "/api/messages?why=retry", "/api/messages/{id}", "/api/messages/{id}?payload=true", "/api/messages/{id}/payload",
         "/api/audit", "/api/audit?limit=1", "/api/openapi.json", "/api/keys"]
REFUSED = ["/api/messages?limit=0", "/api/messages?nonsense=1", "/api/messages?cursor=zz", "/api/messages?source=none",
           "/api/messages?target=none", "/api/messages/none", "/api/messages/none/payload", "/api/audit?limit=x"]


def test_looking(console, judge):
    paths = judge.spec["paths"]
    for path in LOOKS:
        if path.partition("?")[0] not in paths:
            continue
        answer = check(console, judge, "GET", path.replace("{id}", console.fine))
        assert answer.status in (200, 503) if path == "/healthz" else answer.status == 200, f"{path}: {answer}"
    for path in REFUSED:
        assert check(console, judge, "GET", path).status in (400, 404), path
    looked = {p.partition("?")[0] for p in LOOKS} | {"/api/events"}
    assert {p for p, m in paths.items() if "get" in m} <= looked, "a new route wants to be tried here"


def test_acting(console, judge):
    ids = console.ids
    calls = [
        ("/api/messages/requeue", {"ids": ids[:1], "target": "events", "reason": "x"}, 200),
        ("/api/messages/requeue", {"state": "failed", "dry_run": True}, 200),
        ("/api/messages/requeue", {"state": "failed", "limit": 1, "target": "partner"}, 200),
        ("/api/messages/requeue", {"ids": ids[:1]}, 400),
        ("/api/messages/requeue", {"ids": [console.fine], "target": "events"}, 409),
        ("/api/messages/requeue", {"ids": ["none"], "target": "events"}, 404),
        ("/api/messages/discard", {"ids": ids[1:2], "target": "events", "reason": "x"}, 200),
        ("/api/messages/discard", {"ids": ids[1:2], "target": "events"}, 400),
        ("/api/messages/defer", {"target": "events", "until": "+1h", "dry_run": True}, 200),
        ("/api/messages/defer", {"target": "events"}, 400),
        ("/api/purge", {"delivered_before": "1h", "failed_before": "30d"}, 200),
        ("/api/purge", {"delivered_before": "0s", "dry_run": True}, 200),
        ("/api/purge", {}, 400),
        ("/api/targets/events/pause", {"reason": "x"}, 200),
        ("/api/targets/events/resume", {}, 200),
        ("/api/targets/events/pause", {}, 400),
        ("/api/targets/none/resume", {}, 404),
        ("/api/reload", {"dry_run": True}, 200),
        ("/api/reload", {"dry": True}, 400),
        ("/api/drain", {"dry_run": True}, 200),
        ("/api/drain", {"dry_run": 1}, 400),
    ]
    for path, body, status in calls:
        answer = check(console, judge, "POST", path, body=body)
        assert answer.status == status, f"{path} {body}: {answer}"
    tried = {re.sub("/(events|none)/", "/{name}/", path) for path, _, _ in calls}
    posts = {p for p, m in judge.spec["paths"].items() if "post" in m}
    assert posts <= tried | {"/api/messages/{id}/redact", "/api/messages/{id}/amend", "/api/messages/{id}/cancel"}, "a new route wants to be tried here"
    broken = console.config.read_text()
    console.config.write_text(broken + "nonsense: 1\n")
    assert check(console, judge, "POST", "/api/reload", body={}).status == 400
    console.config.write_text(broken)


def test_no_token_no_body_no_json(console, judge):
    assert check(console, judge, "GET", "/api/outbox", token=None).status in UNKNOWN
    assert check(console, judge, "POST", "/api/drain", token="rob", body={}).status == 403
    assert check(console, judge, "POST", "/api/drain", body=b"[1]").status == 400
    assert check(console, judge, "POST", "/api/drain", body=b"{").status == 400
    assert check(console, judge, "POST", "/api/drain", body=b"{}", headers={"Content-Type": "text/plain"}).status == 415


WRONG = [None, 1, -1, 1.5, True, "", "\x1b[2J", [], [1], ["a"], {}, {"a": 1}, "x" * 2000, 10**17]


def test_bodies_that_the_description_forbids_are_refused(console, judge):
    """Each field of each body, with values of every type: what the schema does not allow is 400, and never 500."""
    spec, tried = judge.spec, 0
    for path, methods in spec["paths"].items():
        if "requestBody" not in methods.get("post", {}):
            continue
        name = methods["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        schema = spec["components"]["schemas"][name]
        real = path.replace("{name}", "events").replace("{id}", console.fine)
        for field in [*schema["properties"], "unknown", "IDS"]:
            for value in WRONG:
                body = {f: "+1h" for f in schema["required"]} | {"dry_run": True} | {field: value}
                if "dry_run" not in schema["properties"]:
                    del body["dry_run"]
                if value is None or judge.allows(schema, body):
                    continue
                answer = check(console, judge, "POST", real, body=body)
                assert answer.status in (400, 413), f"{path} {body}: {answer}"
                assert answer.status == 413 or field in answer.error, f"{path} {body}: {answer.error}"
                tried += 1
    assert tried > 300


def test_the_judge_can_say_no(console, judge):
    """A description that is not true is found out."""
    for lie in ("lane", "state"):
        spec = copy.deepcopy(judge.spec)
        if lie == "lane":
            del spec["components"]["schemas"]["Delivery"]["properties"]["lane"]
        else:
            spec["components"]["schemas"]["Delivery"]["properties"]["state"]["enum"] = ["happy"]
        other = Judge(packages(), spec)
        assert lie in other.answer("GET", "/api/messages", console.get("/api/messages"))
        other.close()


def test_tokens_are_not_described(judge):
    text = str(judge.spec)
    assert not any(token in text for _, token in TOKENS.values())
