# SPDX-License-Identifier: Apache-2.0
"""The oracle: compares the producer's ledger with the consumer's file and with the store.

judge() knows nothing of the relay. What it needs to know of a scenario is one number: how many
duplicates its crashes can have caused, which is what was in flight when they happened.
"""
import base64
import json
from dataclasses import dataclass, field

from kit import outbox

SHOWN = 5
DIED_ALONE = "the relay died while this was the only message in flight"


@dataclass
class Verdict:
    delivered: int = 0
    duplicates: int = 0
    problems: list = field(default_factory=list)

    def problem(self, what, examples):
        examples = list(examples)
        if examples:
            shown = ", ".join(map(str, examples[:SHOWN]))
            self.problems.append(f"{what}: {len(examples)} ({shown})")


def parse(lines):
    """(events, lines that are no event). An event is a pair: the parsed object and its bytes."""
    events, bad = [], []
    for line in lines:
        try:
            event = json.loads(line)
            if not line.endswith(b"\n") or event["specversion"] != "1.0":
                raise ValueError("no whole CloudEvents line")
            events.append((event, line))
        except (ValueError, KeyError, TypeError):
            bad.append(line[:80])
    return events, bad


def payload_differs(message, event, line):
    if isinstance(message.payload, bytes):
        return base64.b64decode(event.get("data_base64", "")) != message.payload
    if message.content_type == "application/json":
        # Byte for byte as it was published, not parsed and printed again.
        return b'"data":' + message.payload.encode() + b"}\n" not in line
    return event.get("data") != message.payload


def event_differs(message, event, line):
    """What of the message did not arrive as it was published; None when all is well."""
    others = json.loads(event.get("outboxheaders", "{}"))
    headers = {name: others.get(name, event.get(name)) for name in message.headers or {}}
    seen = {"type": event.get("type"), "key": event.get("partitionkey"),
            "sequence": event.get("sequence"), "content type": event.get("datacontenttype"),
            "headers": headers}
    meant = {"type": message.type, "key": message.key, "sequence": str(message.seq),
             "content type": message.content_type, "headers": message.headers or {}}
    for name, value in meant.items():
        if seen[name] != value:
            return f"{message.id}: {name} is {seen[name]!r}, not {value!r}"
    if payload_differs(message, event, line):
        return f"{message.id}: payload is {line!r}, not {message.payload!r}"
    return None


def out_of_order(first):
    """Messages whose first delivery came after that of a later one of their key."""
    last = {}
    for message in first:
        if message.key is None:
            continue
        if message.n < last.get(message.key, 0):
            yield f"{message.key}/{message.n} after {message.key}/{last[message.key]}"
        last[message.key] = max(message.n, last.get(message.key, 0))


def judge(ledger, lines, duplicates_allowed, unordered=()):
    """unordered: ids that somebody took out of their key's order (requeued, deferred)."""
    verdict = Verdict()
    events, bad = parse(lines)
    committed = {message.id: message for message in ledger.committed}
    rolled_back = {message.id for message in ledger.rolled_back}
    times, first = {}, []
    for event, _ in events:
        times[event["id"]] = times.get(event["id"], 0) + 1
        if times[event["id"]] == 1 and event["id"] in committed:
            first.append(committed[event["id"]])
    verdict.delivered = len(first)
    verdict.duplicates = sum(count - 1 for count in times.values())
    verdict.problem("not a CloudEvents line", bad)
    verdict.problem("lost", (m.id for m in ledger.committed if m.id not in times))
    verdict.problem("phantom, rolled back", (i for i in times if i in rolled_back))
    verdict.problem("phantom, never published",
                    (i for i in times if i not in committed and i not in rolled_back))
    verdict.problem("out of order", out_of_order(m for m in first if m.id not in unordered))
    verdict.problem("changed on the way",
                    filter(None, (event_differs(committed[event["id"]], event, line)
                                  for event, line in events if event["id"] in committed)))
    if verdict.duplicates > duplicates_allowed:
        verdict.problems.append(f"duplicates: {verdict.duplicates}, in flight at crashes: "
                                f"{duplicates_allowed}")
    return verdict


def expect_good(ledger, crew, duplicates_allowed, guarded=False):
    """
    Judge, and fail with everything that is wrong. Returns the verdict. guarded: the guard against
    messages that kill may have charged some that were alone in flight when a relay was killed.
    """
    verdict = judge(ledger, crew.lines(), duplicates_allowed)
    logs = "\n".join(f"-- {relay.log_path}\n{relay.log()}" for relay in crew.relays)
    assert not verdict.problems, "\n".join(verdict.problems) + "\n" + logs
    check_store(crew.shop, ledger, guarded)
    return verdict


# ---- the store ------------------------------------------------------------------------------


def check_deliveries(shop, ledger, guarded):
    ids = [message.id for message in ledger.committed]
    for table, column in (("outbox_message", "id"), ("orders", "message")):
        stored = [row[0] for row in shop.rows(f"SELECT {column} FROM {table} ")]
        assert sorted(stored) == sorted(ids), f"{table} and the ledger differ: a transaction was torn"
    states = shop.rows("SELECT state, count(*) FROM outbox_delivery WHERE target = 'events' GROUP BY 1")
    assert states == [("delivered", len(ids))], f"state, count: {states}"
    charged = shop.rows("SELECT id, attempts, last_error FROM outbox_delivery WHERE attempts > 0")
    if guarded:
        charged = [row for row in charged if not row[2].startswith(DIED_ALONE)]
    assert not charged, f"charged without a reason: {charged}"
    left = shop.rows("SELECT seq, state, why FROM outbox_detour WHERE state <> 'delivered'")
    assert not left, f"detours left: {left}"


def check_commands(shop, ledger):
    """The commands say the same as the tables."""
    target, = shop.status()["targets"]
    counts = {name: target[name] for name in ("pending", "sending", "waiting", "parked", "deferred",
                                              "failed", "discarded", "lag")}
    assert not any(counts.values()), f"status: {counts}"
    assert target["delivered"] == len(ledger.committed), f"status: {target}"
    listed, after = [], []
    while True:
        page = outbox("list", "--store", shop.store, "--json", "--limit", 500, *after)
        listed += page["deliveries"]
        if not page["next"]:
            break
        after = ["--after", page["next"]]
    assert [row["id"] for row in listed] == [message.id for message in ledger.committed]
    assert {row["state"] for row in listed} == {"delivered"}


def check_store(shop, ledger, guarded):
    """Every committed message is delivered, and nothing is left over."""
    shop.check()
    check_deliveries(shop, ledger, guarded)
    check_commands(shop, ledger)
