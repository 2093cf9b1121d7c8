# SPDX-License-Identifier: Apache-2.0
"""What no server at hand can be made to do, played by a scripted peer: it is a stand-in, not Azure Service Bus."""
import pathlib
import re

import pytest
from conftest import message

PAGE = pathlib.Path(__file__).parents[4] / "docs/transports/amqp1.md"


@pytest.fixture(scope="module", autouse=True)
def say_it():
    print("\na scripted peer (Qpid Proton) stands in for Azure Service Bus: no such service is at hand")


def rows():
    """The page's table of conditions: name, verdict, with one address, closed."""
    text = PAGE.read_text(encoding="utf-8").split("## Conditions")[1]
    found = re.findall(r"^\| `([a-z:.-]+)` \|[^|]*\| (\w+) \| (\S+) \| (\w+) \|", text, re.M)
    assert len(found) > 20
    return found


def batch(n, **fields):
    return [message(f"m-{i}", **fields) for i in range(n)]


# ---- each condition


@pytest.mark.parametrize("name,verdict,only,closed", rows())
def test_each_condition(standin, probe, name, verdict, only, closed):
    peer = standin()
    peer.script = lambda address, m: ("rejected", name) if m.subject == "bad" else "accepted"
    mixed = [message("a", topic="q1"), message("b", "bad", topic="q2"), message("c", topic="q1")]
    # with several addresses it is the message's
    several = probe(peer.url("{topic}"))
    answer = several.publish(mixed)
    assert answer.status == "ok" and answer.verdicts == ["ACKED", verdict, "ACKED"], answer
    assert name in answer.items[1][2] and answer.items[1][1] == 0x25
    # with one it may be the target's
    one = probe(peer.url("q"))
    answer = one.publish(mixed)
    if only == "-":
        assert answer.status == "ok" and answer.verdicts == ["ACKED", verdict, "ACKED"], answer
    else:
        assert answer.status == only[1:].lower() and answer.verdicts == ["ACKED", "UNSET", "ACKED"], answer
        assert name in answer.text
    # the address is refused: at connect, where it is the only one
    peer.refused = {"q": name, "q2": name}
    answer = probe(peer.url("q"), connected=False).connect()
    assert answer.status == closed[1:].lower() and name in answer.text, answer
    answer = probe(peer.url("{topic}")).publish(mixed)
    assert answer.status == "ok" and answer.verdicts == ["ACKED", "RETRY", "ACKED"], answer
    assert name in answer.items[1][2]
    # the connection is closed with it
    peer.refused = {}
    peer.script = lambda address, m: ("close", name)
    answer = probe(peer.url("q")).publish(batch(1))
    assert answer.status == closed[1:].lower() and answer.verdicts == ["UNKNOWN"] and name in answer.text, answer


def test_an_unknown_condition_and_none(standin, probe):
    peer = standin()
    for name in ("example:never-heard-of", None):
        peer.script = lambda address, m, name=name: ("rejected", name)
        answer = probe(peer.url()).publish(batch(2))
        assert answer.status == "ok" and answer.verdicts == ["RETRY", "RETRY"], answer


# ---- outcomes


@pytest.mark.parametrize("outcome,verdict,native", [("accepted", "ACKED", 0), ("released", "RETRY", 0x26),
                                                    ("modified", "RETRY", 0x27), ("settled", "UNKNOWN", 0)])
def test_each_outcome(standin, probe, outcome, verdict, native):
    peer = standin()
    peer.script = lambda address, m: outcome if m.id == "m-1" else "accepted"
    answer = probe(peer.url()).publish(batch(3))
    assert answer.status == "ok" and answer.verdicts == ["ACKED", verdict, "ACKED"], answer
    assert answer.items[1][1] == native


def test_received_is_no_outcome(standin, probe):
    peer = standin()
    peer.script = lambda address, m: "received" if m.id == "m-1" else "accepted"
    answer = probe(peer.url()).publish(batch(3), 1500)
    assert answer.status == "timedout" and answer.verdicts == ["ACKED", "UNKNOWN", "ACKED"], answer


def test_silence_is_unknown_and_nothing_leaves_later(standin, probe):
    peer = standin(credit=3)
    peer.script = lambda address, m: "silence"
    p = probe(peer.url())
    answer = p.publish(batch(5), 1500)
    assert answer.status == "timedout" and answer.verdicts == ["UNKNOWN"] * 3 + ["UNSET"] * 2, answer
    assert p.publish(batch(1)).status == "conn"
    assert len(peer.messages) == 3


# ---- links


def test_an_idle_link_is_attached_again(standin, probe):
    peer = standin()
    p = probe(peer.url())
    assert p.publish(batch(2)).verdicts == ["ACKED"] * 2
    peer.detach("amqp:link:detach-forced")
    assert p.publish(batch(2)).verdicts == ["ACKED"] * 2
    assert [address for address, _ in peer.attached] == ["q", "q"] and len(peer.hostnames) == 1


def test_a_link_that_is_closed_in_the_middle(standin, probe):
    peer = standin(credit=2)
    seen = []

    def script(_, m):
        seen.append(m.id)
        return "accepted" if len(seen) < 2 or len(seen) > 2 else ("detach", "amqp:link:detach-forced")
    peer.script = script
    answer = probe(peer.url()).publish(batch(4))
    # the second is in flight when the link goes; those behind it go by the next one
    assert answer.status == "ok" and answer.verdicts == ["ACKED", "UNKNOWN", "ACKED", "ACKED"], answer


def test_once_is_enough(standin, probe):
    """A link that is closed again and again ends the batch, with nobody charged for what the broker does."""
    peer = standin(credit=1)
    peer.script = lambda address, m: ("detach", "amqp:link:detach-forced")
    answer = probe(peer.url()).publish(batch(4))
    assert answer.status == "conn" and answer.verdicts == ["UNKNOWN"] * 2 + ["UNSET"] * 2, answer
    assert len(peer.messages) == 2


def test_alone_in_flight_it_is_the_reason(standin, probe):
    peer = standin()
    peer.script = lambda address, m: ("detach", "amqp:link:message-size-exceeded")
    p = probe(peer.url())
    answer = p.publish(batch(1))
    assert answer.status == "ok" and answer.verdicts == ["REJECTED"], answer
    assert p.publish(batch(2)).verdicts == ["UNKNOWN"] * 2


def test_too_large_is_never_sent(standin, probe):
    peer = standin()
    peer.max_size = 2000
    answer = probe(peer.url()).publish([message("a"), message("b", size=3000), message("c")])
    assert answer.status == "ok" and answer.verdicts == ["ACKED", "REJECTED", "ACKED"], answer
    assert re.search(r"has 3\d\d\d bytes; \"q\" takes 2000", answer.items[1][2])
    assert [m.id for _, m in peer.messages] == ["a", "c"]


def test_the_number_of_links_is_bounded(standin, probe):
    peer = standin()
    p = probe(peer.url("{topic}?links=3"))
    answer = p.publish([message(f"m-{i}", topic=f"q{i % 10}") for i in range(40)])
    assert answer.status == "ok" and answer.verdicts == ["ACKED"] * 40, answer
    assert len(peer.links) <= 3 and len(peer.detached) >= 7
    # the one that was used last stays
    before = len(peer.attached)
    last = peer.links[-1].remote_target.address
    assert p.publish([message("x", topic=last)]).verdicts == ["ACKED"]
    assert len(peer.attached) == before


def test_an_address_that_ends_the_session_is_charged_alone(standin, probe):
    """Some brokers end the session at an address that they do not like, and with it all other links."""
    peer = standin()
    opening = peer.on_link_opening

    def on_link_opening(event):
        if event.link.remote_target.address == "bad":
            event.session.condition = peer_condition("amqp:not-found")
            event.session.close()
        else:
            opening(event)
    from standin import condition as peer_condition  # pylint: disable=import-outside-toplevel
    peer.on_link_opening = on_link_opening
    p = probe(peer.url("{topic}"))
    left = [message(f"m-{i}", topic="bad" if i == 3 else "good") for i in range(8)]
    answer = p.publish(left)
    assert answer.status != "ok" and answer.verdicts[3] == "RETRY" and "amqp:not-found" in answer.items[3][2], answer
    assert p.connect().status == "ok"
    rest = [m for m, verdict in zip(left, answer.verdicts) if verdict not in ("ACKED", "RETRY")]
    assert not rest or p.publish(rest).verdicts == ["ACKED"] * len(rest)


# ---- credit


def test_no_credit_is_full(standin, probe):
    peer = standin(credit=0)
    answer = probe(peer.url()).publish(batch(3), 3000)
    assert answer.status == "full" and answer.verdicts == ["UNSET"] * 3 and "no credit" in answer.text, answer
    assert not peer.messages


def test_an_address_without_credit_is_charged_where_others_have_some(standin, probe):
    peer = standin()
    opening = peer.on_link_opening

    def on_link_opening(event):
        peer.credit = 0 if event.link.remote_target.address == "dry" else 100
        opening(event)
    peer.on_link_opening = on_link_opening
    answer = probe(peer.url("{topic}")).publish(
        [message("a", topic="dry"), message("b", topic="wet"), message("c", topic="dry")], 4000)
    assert answer.status == "ok" and answer.verdicts == ["RETRY", "ACKED", "RETRY"] and "credit" in answer.items[0][2], answer


def test_an_attach_without_an_answer_costs_the_deadline(standin, probe):
    peer = standin()
    peer.silent = {"q"}
    answer = probe(peer.url(), connected=False).connect(1500)
    assert answer.status == "timedout" and "attaching" in answer.text, answer


# ---- throttling


def test_a_busy_service_is_left_alone(standin, probe):
    peer = standin()
    peer.script = lambda address, m: ("rejected", "com.microsoft:server-busy")
    answer = probe(peer.url()).publish(batch(3))
    assert answer.status == "full" and answer.verdicts == ["UNSET"] * 3 and "back-off 10" in answer.lines, answer
    peer.script = lambda address, m: ("rejected", "com.microsoft:server-busy") if address == "q1" else "accepted"
    answer = probe(peer.url("{topic}")).publish([message("a", topic="q1"), message("b", topic="q2")])
    assert answer.status == "ok" and answer.verdicts == ["RETRY", "ACKED"] and "after 0 10" in answer.lines, answer


# ---- the end of the connection


@pytest.mark.parametrize("how,status", [(("close", "amqp:connection:forced"), "conn"), (("end", None), "conn"), ("drop", "conn"),
                                        (("close", "amqp:unauthorized-access"), "auth")])
def test_the_end_of_the_connection(standin, probe, how, status):
    peer = standin()
    peer.script = lambda address, m: how if m.id == "m-1" else "accepted"
    p = probe(peer.url())
    answer = p.publish(batch(3))
    assert answer.status == status and answer.verdicts[1] == "UNKNOWN", answer
    # what was said of the others before may have come through
    assert {answer.verdicts[0], answer.verdicts[2]} <= {"ACKED", "UNKNOWN"}
    peer.script = lambda address, m: "accepted"
    assert p.connect().status == "ok" and p.publish(batch(3)).verdicts == ["ACKED"] * 3


def test_a_connection_that_ended_while_idle_is_made_again(standin, probe):
    peer = standin()
    p = probe(peer.url())
    assert p.publish(batch(1)).verdicts == ["ACKED"]

    def close_all():
        for link in peer.links:
            link.connection.close()
    peer.do_and_send(close_all)
    assert p.publish(batch(2)).verdicts == ["ACKED"] * 2
    assert len(peer.hostnames) == 2
