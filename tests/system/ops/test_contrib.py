# SPDX-License-Identifier: Apache-2.0
"""contrib/: the Prometheus rules and the Grafana dashboard, against promtool and against a real relay's metrics."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from console import Console
from shell import Shop, until

ROOT = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).parents[3]))
RULES = ROOT / "contrib" / "prometheus" / "outbox.rules.yml"
DASHBOARD = json.loads((ROOT / "contrib" / "grafana" / "outbox.json").read_text())
PANELS = [p for p in DASHBOARD["panels"] if p["type"] != "row"]
NAME = re.compile(r"\b(?:outbox|process)_[a-z_]+\b")


def promtool(*args):
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    done = subprocess.run(["promtool", *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def expressions():
    """Every PromQL expression of the dashboard, its variables replaced as Grafana would."""
    found = [t["expr"] for p in PANELS for t in p["targets"]]
    return [e.replace("$__rate_interval", "5m").replace("$source", ".*").replace("$target", ".*") for e in found]


def rule_names():
    return re.findall(r"- alert: outbox_(\w+)", RULES.read_text())


def test_the_rules_are_rules():
    promtool("check", "rules", RULES)


def test_each_rule_fires_and_does_not_fire():
    promtool("test", "rules", RULES.with_name("outbox.rules.test.yml"))
    cases = re.findall(r"^  - name: (\w+)$", RULES.with_name("outbox.rules.test.yml").read_text(), re.M)
    assert sorted(cases) == sorted(rule_names())


def test_the_rules_are_the_relays_own(tmp_path):
    """Names and levels; `gone` is what only somebody outside can see, `config_refused` is about no source."""
    severity = {"unhealthy": "critical", "degraded": "warning", "healthy": "info"}
    own = {r["rule"]: severity[r["level"]] for r in Shop(tmp_path).run("alerts", "--rules", "--json").json["rules"]}
    theirs = dict(re.findall(r"- alert: outbox_(\w+)\n.*?severity: (\w+)", RULES.read_text(), re.S))
    assert theirs == {**own, "gone": "critical", "config_refused": "warning"}


def test_each_alert_has_a_section_in_the_runbook():
    sections = set(re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.M))
    assert set(re.findall(r"docs/runbook\.md#(\w+)", RULES.read_text())) == set(rule_names())
    assert set(rule_names()) <= sections


def test_the_page_of_alerts_has_each_rule(tmp_path):
    own = {r["rule"]: r["level"] for r in Shop(tmp_path).run("alerts", "--rules", "--json").json["rules"]}
    rows = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", (ROOT / "docs" / "alerts.md").read_text(), re.M))
    assert {rule: "healthy" if state == "information" else state for rule, state in rows.items()} == own


def test_the_dashboards_structure():
    assert DASHBOARD["schemaVersion"] >= 36 and DASHBOARD["uid"] and DASHBOARD["title"] == "outbox"
    assert [v["name"] for v in DASHBOARD["templating"]["list"]] == ["datasource", "source", "target"]
    ids = [p["id"] for p in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24 and at["w"] > 0 and at["h"] > 0, panel["title"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, f"{panel['title']} lies over another"
        taken |= cells
    for panel in PANELS:
        assert panel["title"] and panel["targets"] and panel["fieldConfig"]["defaults"]["unit"], panel
        for target in [panel, *panel["targets"]]:
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
        refs = [t["refId"] for t in panel["targets"]]
        assert len(set(refs)) == len(refs)


def test_the_dashboards_expressions_are_promql(tmp_path):
    rules = [{"record": f"e{i}", "expr": e} for i, e in enumerate(expressions())]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", tmp_path / "rules.yml")


def test_every_metric_is_one_that_a_relay_has(tmp_path):
    console = Console(tmp_path).up()
    try:
        with console.db() as db:
            db.execute("INSERT INTO outbox_message (type, key, payload) VALUES ('a', 'k', '{}'), ('a', 'k', 'no json')")
        until(lambda: 'rule="failed"' in console.get("/metrics").body.decode(), "a look after the failure")
        text = console.get("/metrics").body.decode()
    finally:
        console.down()
    known = set(re.findall(r"^([a-z_]+)(?:\{|\s)", text, re.M))
    used = set(NAME.findall(" ".join(expressions()))) | set(NAME.findall(" ".join(
        v["query"]["query"] for v in DASHBOARD["templating"]["list"] if v["type"] == "query")))
    for expr in re.findall(r"expr: >-\n(.*?)\n        (?:for|labels):", RULES.read_text(), re.S):
        used |= set(NAME.findall(expr))
    assert len(used) > 25
    assert used <= known, f"no relay has {sorted(used - known)}"
    # each has a label where one is asked for
    for name, labels in re.findall(r"\b(outbox_\w+)\{(.*?)\}", " ".join(expressions())):
        line = re.search(rf"^{name}\{{(.*?)\}} ", text, re.M)
        for label in re.findall(r"(\w+)=", labels):
            assert line and f'{label}="' in line.group(1), f"{name} has no label {label}"
