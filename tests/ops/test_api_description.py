# SPDX-License-Identifier: Apache-2.0
"""The description at /api/openapi.json against the real server, judged by openapi-core, which knows nothing of us:
every route, what succeeds and what is refused."""
import os
import pathlib
import re
import sys

import pytest

from console import TOKENS, Console
from fetch import fetch
from shell import until

PACKAGE = "openapi-core==0.19.5"
ROUTES = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).parents[2])) / "src/admin/routes.c"


@pytest.fixture(scope="module")
def judge():
    folder = fetch(PACKAGE, "openapi_core")
    if not folder:
        pytest.skip(f"{PACKAGE} could not be had with pip: the description is not checked against the server here")
    sys.path.insert(0, str(folder))
    import openapi_core  # pylint: disable=import-error,import-outside-toplevel
    yield openapi_core
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    made = Console(tmp_path_factory.mktemp("described"), sources=("shop",), targets=("events", "partner"))
    made.ids = [made.insert(payload="{broken", key=f"k{i}") for i in range(6)]
    made.fine = made.insert(key="fine", headers='{"a": "b"}', priority=1)
    made.up()
    until(lambda: made.states() == {"failed": 12, "delivered": 2}, "deliveries")
    yield made
    made.down()


@pytest.fixture(scope="module")
def described(console, judge):
    import openapi_spec_validator  # pylint: disable=import-error,import-outside-toplevel
    spec = console.get("/api/openapi.json").json
    openapi_spec_validator.validate(spec)
    return spec, judge.OpenAPI.from_dict(spec)


def check(console, described, method, path, **how):
    """Ask, and let the description judge the answer."""
    from openapi_core.testing import MockRequest, MockResponse  # pylint: disable=import-error,import-outside-toplevel
    answer = console.ask(method, path, **how)
    plain, _, _ = path.partition("?")
    request = MockRequest(f"http://127.0.0.1:{console.port}", method.lower(), plain)
    response = MockResponse(answer.body, answer.status, content_type=answer.headers["Content-Type"].split(";")[0])
    described[1].validate_response(request, response)
    return answer


def test_the_description_has_every_route_and_no_other(described):
    table = set(re.findall(r'"(/[a-z][^" ]*)"', ROUTES.read_text()))
    assert table == set(described[0]["paths"]) and len(table) > 20


def test_every_route_is_there_and_wants_what_is_said(console, described):
    for path, methods in described[0]["paths"].items():
        real = path.replace("{id}", console.fine).replace("{name}", "events")
        for method, operation in methods.items():
            refused = console.ask(method.upper(), real, token=None, body={} if method == "post" else None)
            assert (refused.status == 401) == bool(operation.get("security")), f"{method} {path}: {refused}"
            if operation["x-role"] == "operate":
                refused = console.ask(method.upper(), real, token="rob", body={} if method == "post" else None)
                assert refused.status == 403, f"{method} {path}: {refused}"
        other = "POST" if "get" in methods else "GET"
        if not (other == "GET" and path.startswith("/api/messages/")):  # GET /api/messages/requeue is a message's name
            assert console.ask(other, real, body={} if other == "POST" else None).status in (403, 405), path
    assert console.ask("GET", "/api/none").status == 404


LOOKS = ["/healthz", "/livez", "/readyz", "/metrics", "/api/outbox", "/api/targets", "/api/targets?source=shop&target=events",
         "/api/lanes", "/api/alerts", "/api/config", "/api/messages", "/api/messages?state=failed&limit=2",
         "/api/messages?why=retry", "/api/messages/{id}", "/api/messages/{id}?payload=true", "/api/messages/{id}/payload",
         "/api/audit", "/api/audit?limit=1", "/api/openapi.json", "/api/keys"]
REFUSED = ["/api/messages?limit=0", "/api/messages?nonsense=1", "/api/messages?cursor=zz", "/api/messages?source=none",
           "/api/messages?target=none", "/api/messages/none", "/api/messages/none/payload", "/api/audit?limit=x"]


def test_looking(console, described):
    paths = described[0]["paths"]
    for path in LOOKS:
        if path.partition("?")[0] not in paths:
            continue
        answer = check(console, described, "GET", path.replace("{id}", console.fine))
        assert answer.status in (200, 503) if path == "/healthz" else answer.status == 200, f"{path}: {answer}"
    for path in REFUSED:
        assert check(console, described, "GET", path).status in (400, 404), path
    looked = {p.partition("?")[0] for p in LOOKS} | {"/api/events"}
    assert {p for p, m in paths.items() if "get" in m} <= looked, "a new route wants to be tried here"


def test_acting(console, described):
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
        answer = check(console, described, "POST", path, body=body)
        assert answer.status == status, f"{path} {body}: {answer}"
    tried = {re.sub("/(events|none)/", "/{name}/", path) for path, _, _ in calls}
    posts = {p for p, m in described[0]["paths"].items() if "post" in m}
    assert posts <= tried | {"/api/messages/{id}/redact"}, "a new route wants to be tried here"
    broken = console.config.read_text()
    console.config.write_text(broken + "nonsense: 1\n")
    assert check(console, described, "POST", "/api/reload", body={}).status == 400
    console.config.write_text(broken)


def test_no_token_no_body_no_json(console, described):
    assert check(console, described, "GET", "/api/outbox", token=None).status == 401
    assert check(console, described, "POST", "/api/drain", token="rob", body={}).status == 403
    assert check(console, described, "POST", "/api/drain", body=b"[1]").status == 400
    assert check(console, described, "POST", "/api/drain", body=b"{").status == 400
    assert check(console, described, "POST", "/api/drain", body=b"{}", headers={"Content-Type": "text/plain"}).status == 415


WRONG = [None, 1, -1, 1.5, True, "", "\x1b[2J", [], [1], ["a"], {}, {"a": 1}, "x" * 2000, 10**30]


def test_bodies_that_the_description_forbids_are_refused(console, described):
    """Each field of each body, with values of every type: what the schema does not allow is 400, and never 500."""
    import jsonschema  # pylint: disable=import-error,import-outside-toplevel
    spec, tried = described[0], 0
    for path, methods in spec["paths"].items():
        if "requestBody" not in methods.get("post", {}):
            continue
        name = methods["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        schema = spec["components"]["schemas"][name]
        real = path.replace("{name}", "events").replace("{id}", console.fine)
        judge = jsonschema.Draft202012Validator(schema)
        for field in [*schema["properties"], "unknown", "IDS"]:
            for value in WRONG:
                body = {"dry_run": True, field: value}
                if value is None or judge.is_valid({**{f: "+1h" for f in schema["required"]}, **body}):
                    continue
                answer = check(console, described, "POST", real, body={**{f: "+1h" for f in schema["required"]}, **body})
                assert answer.status in (400, 413), f"{path} {body}: {answer}"
                assert answer.status == 413 or field in answer.error, f"{path} {body}: {answer.error}"
                tried += 1
    assert tried > 300


def test_the_judge_can_say_no(console, described):
    """A description that is not true is found out."""
    import copy  # pylint: disable=import-outside-toplevel
    from openapi_core import OpenAPI  # pylint: disable=import-error,import-outside-toplevel
    spec = copy.deepcopy(described[0])
    del spec["components"]["schemas"]["Delivery"]["properties"]["lane"]
    with pytest.raises(Exception, match="(?i)invalid"):
        check(console, (spec, OpenAPI.from_dict(spec)), "GET", "/api/messages")
    spec = copy.deepcopy(described[0])
    spec["components"]["schemas"]["Target"]["properties"]["state"]["enum"] = ["happy"]
    with pytest.raises(Exception, match="(?i)invalid"):
        check(console, (spec, OpenAPI.from_dict(spec)), "GET", "/api/outbox")


def test_tokens_are_not_described(described):
    text = str(described[0])
    assert not any(token in text for _, token in TOKENS.values())
