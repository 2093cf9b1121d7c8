# SPDX-License-Identifier: Apache-2.0
"""What mosquitto answers, and what becomes of it; what it cannot be made to answer is in test_peer.py."""
import json
import re

import kit
import pytest
from rig import charged, properties

LOGIN = "relay:pw@"


def detours(shop):
    return {ident: (state, attempts, error) for ident, state, attempts, error in
            shop.rows("SELECT id, state, attempts, last_error FROM outbox_detour")}


@pytest.fixture
def guarded(server, tmp_path):
    """A broker at which the user relay may write to shop/# except shop/secret."""
    acl = tmp_path / "acl"
    acl.write_text("user relay\ntopic write shop/#\ntopic deny shop/secret\nuser witness\ntopic readwrite #\n")
    one = server()
    one.end()
    one.configure(f"acl_file {acl}", f"allow_anonymous false\n{one.passwords(relay='pw', witness='pw')}")
    return one.start()


@pytest.mark.parametrize("qos", [1, 2])
def test_a_forbidden_topic_is_its_messages_trouble(guarded, probe, qos):
    """0x87, in PUBACK and in PUBREC"""
    out = probe(guarded.url(login=LOGIN, options=f"?qos={qos}"), 4, 10, 20, "open,secret")
    assert "publish ok acked 2 rejected 0 retry 2 unknown 0 unset 0 native 135 " in out, out
    assert 'topic "shop/secret": Not authorized (0x87); check user' in out, out


def test_a_forbidden_topic_of_all_is_an_outage(guarded, probe, shop, courier, place, witness):
    out = probe(guarded.url("shop/secret", LOGIN), 3)
    assert "publish auth acked 0 rejected 0 retry 0 unknown 0 unset 3 native 135 " in out, out
    place()
    place()
    relay = courier.start(guarded.url("shop/secret", LOGIN))
    kit.until(lambda: "Not authorized (0x87)" in relay.log(), "the relay to say why")
    assert detours(shop) == {}
    reader = witness(guarded.port, user="witness", password="pw")
    (guarded.folder / "../acl").write_text("user relay\ntopic write shop/#\nuser witness\ntopic readwrite #\n")
    guarded.signal(1)
    kit.until(lambda: len(reader.arrived) == 2, "both to arrive")
    relay.end()
    assert charged(shop) == 0


def test_only_the_guilty_wait(guarded, shop, courier, place, witness):
    reader = witness(guarded.port, user="witness", password="pw")
    good, secret, wild = place("good"), place("secret"), place("a+b")
    courier.once(guarded.url(login=LOGIN))
    assert {properties(m)["id"] for m in reader.read()} == {good}
    seen = detours(shop)
    assert seen[secret][:2] == ("pending", 1) and 'topic "shop/secret"' in seen[secret][2]
    assert seen[wild][0] == "failed" and 'the topic "shop/a+b" has a wildcard' in seen[wild][2]


@pytest.mark.parametrize("topic,words", [
    ("a+b", 'topic "shop/a+b" has a wildcard'), ("a#", "wildcard"), ("a\nb", "control characters"),
    ("\x7f", "control characters"), ("x" * 65532, "longer than 65535 bytes"), ("\ufffe", "not UTF-8 as MQTT wants")],
    ids=["plus", "hash", "newline", "delete", "long", "noncharacter"])
def test_topics_that_are_none(server, probe, topic, words):
    out = probe(server().url(), 2, 10, 20, f"{topic},good")
    assert "publish ok acked 1 rejected 1 " in out and words in out, out


def test_dollar_is_the_brokers(server, probe):
    broker = server()
    out = probe(broker.url("{type}"), 1, 10, 20, "$SYS/broker/version")
    assert "rejected 1 " in out and "begins with $" in out, out
    assert "acked 1 " in probe(broker.url("$own/{type}"), 1)
    assert "acked 1 " in probe(broker.url("{type}"), 1, 10, 20, "x" * 65535)


def test_larger_than_the_broker_says(server, probe, witness):
    """Maximum Packet Size of CONNACK: to the byte, and nothing is sent."""
    broker = server("max_packet_size 2000")
    reader = witness(broker.port)
    sizes = [int(re.search(r"would have (\d+) bytes", probe(broker.url(), 1, 10, 20, "t", size))[1])
             for size in (2500, 2501)]
    assert sizes[1] == sizes[0] + 1
    fits = 2500 - (sizes[0] - 2000)
    out = probe(broker.url(), 1, 10, 20, "t", fits + 1)
    assert "publish ok acked 0 rejected 1 " in out, out
    assert "its packet would have 2001 bytes; this broker takes 2000" in out, out
    assert "publish ok acked 1 " in probe(broker.url(), 1, 10, 20, "t", fits)
    assert [len(message.payload) for message in reader.read()] == [fits]
    assert "disconnected due to" not in broker.log()


def test_larger_than_the_broker_keeps_to_itself(server, probe):
    """0x95: message_size_limit, which a client is not told."""
    broker = server("message_size_limit 1000")
    assert "publish ok acked 1 " in probe(broker.url(), 1, 10, 20, "t", 1000)
    out = probe(broker.url(), 1, 10, 20, "t", 1001)
    assert "publish ok acked 0 rejected 1 retry 0 unknown 0 unset 0 native 149 " in out, out
    assert "Packet too large (0x95)" in out, out


def test_larger_than_the_broker_keeps_to_itself_in_3_1_1(server, probe, witness):
    """The reason for MQTT 5: acknowledged, and gone."""
    broker = server("message_size_limit 1000")
    reader = witness(broker.port)
    assert "publish ok acked 1 " in probe(broker.url(options="?version=3.1.1"), 1, 10, 20, "t", 1001)
    assert reader.read() == []


def test_a_quota(server, probe):
    """0x97: mosquitto limits the bytes of QoS 2 that are on their way."""
    broker = server("max_inflight_bytes 3000")
    out = probe(broker.url(options="?qos=2"), 20, 10, 20, "t", 1000)
    assert "publish ok acked " in out and "unknown 0 unset 0 native 151 " in out, out
    assert 'topic "shop/t": Quota exceeded (0x97)' in out and " retry 0 " not in out, out
    out = probe(broker.url("shop/t", options="?qos=2"), 20, 10, 20, "t", 1000)
    assert "publish full acked " in out and "rejected 0 retry 0 unknown 0 unset " in out, out
    assert "Quota exceeded (0x97)" in out, out


def test_nobody_listens(server, probe, witness):
    """0x10 is a success: whoever publishes cannot know whether somebody should listen."""
    broker = server()
    assert "publish ok acked 1 rejected 0 retry 0 unknown 0 unset 0 native 16 " in probe(broker.url())
    witness(broker.port)
    assert "publish ok acked 1 rejected 0 retry 0 unknown 0 unset 0 native 0 " in probe(broker.url())


@pytest.mark.parametrize("settings,options,words", [
    ("max_qos 1", "?qos=2", "up to QoS 1; leave qos=2 out"),
    ("max_qos 0", "", "up to QoS 0, which it does not confirm"),
    ("retain_available false", "?retain=yes", "retains no messages"),
])
def test_what_the_broker_cannot_do(server, probe, settings, options, words):
    broker = server(settings)
    out = probe(broker.url(options=options))
    assert out.startswith("connect config ") and words in out, out
    assert settings == "max_qos 0" or probe(broker.url()).startswith("connect ok"), out


@pytest.mark.parametrize("login", ["", "relay@", "relay:wrong-one@", "nobody:wrong-one@"])
@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_wrong_login(guarded, probe, login, version):
    out = probe(guarded.url(login=login, options=f"?version={version}"))
    assert out.startswith("connect auth native 13") and "wrong-one" not in out, out


def test_one_client_id_for_two(server, probe, shop, courier, place, witness):
    """0x8e: the broker ends the first connection when a second one has the same id. Nothing is charged."""
    broker = server()
    reader = witness(broker.port)
    url = broker.url(options="?client_id=the-only-one")
    relay = courier.start(url)
    first = place()
    kit.until(lambda: len(reader.arrived) == 1, "the first message")
    assert "connect ok" in probe(url, 0)
    second = place()
    kit.until(lambda: len(reader.arrived) >= 2, "the second message")
    relay.end()
    assert [properties(m)["id"] for m in reader.read()] == [first, second]
    assert "already connected, closing old connection" in broker.log()
    assert charged(shop) == 0


def doctor(shop, url):
    said = kit.outbox("doctor", "--store", shop.store, "--to", f"events={url}", "--json", fails=True)
    return json.dumps(said)


def test_doctor_says_what_an_acknowledgement_means(guarded, server, shop):
    said = doctor(shop, server().url())
    assert "mosquitto version 2" in said and "max_queued_messages" in said and "0x10" in said, said
    assert "3.1.1 has no reason codes" not in said, said
    said = doctor(shop, server().url(options="?version=3.1.1&retain=yes"))
    assert "3.1.1 has no reason codes" in said and "keeps only its last message" in said, said
    # who may not read $SYS
    assert "it does not say which one" in doctor(shop, guarded.url(login=LOGIN))
