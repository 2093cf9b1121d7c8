# SPDX-License-Identifier: Apache-2.0
"""A broker that ends, dies, stops, fills up, forgets our password; a network that is slow, silent or cut. Nothing that it
acknowledged in order is lost, and no attempt is charged."""
import re
import signal

import kit
from proxy import Fault, Proxy
from rig import charged, judge


def finish(shop, courier, producer, url, reader):
    for relay in courier.relays:
        if not relay.dead:
            relay.end()
    courier.drain(url)
    assert charged(shop) == 0
    shop.check()
    return judge(producer.finish(), reader.read())


def test_ended_and_started(server, shop, courier, producer, witness):
    broker = server()
    reader = witness(broker.port)
    producer.publish(100)
    relay = courier.start(broker.url())
    kit.until(lambda: len(reader.arrived) >= 50, "the first messages")
    broker.end()
    producer.publish(100)
    kit.until(lambda: "nothing listens there" in relay.log() or "closed" in relay.log(), "the relay to notice")
    broker.start()
    kit.until(lambda: len(reader.arrived) >= 200, "the rest")
    finish(shop, courier, producer, broker.url(), reader)


def test_killed_while_nothing_is_under_way(server, shop, courier, producer, witness):
    """What was on its way is mosquitto's to lose; here all has arrived. It sends some again: it had not written our witness's
    answers."""
    broker = server("autosave_on_changes true\nautosave_interval 1")
    reader = witness(broker.port)
    relay = courier.start(broker.url())
    for total in (60, 120):
        producer.publish(60)
        kit.until(lambda: len(reader.arrived) >= total, "the messages")  # pylint: disable=cell-var-from-loop
        kit.until(lambda: shop.in_flight() == 0, "nothing to be in flight")
        broker.kill()
        broker.start()
    assert relay.dead is False
    finish(shop, courier, producer, broker.url(), reader)


def test_stopped_and_continued(server, shop, courier, producer, witness):
    broker = server()
    reader = witness(broker.port)
    producer.publish(50)
    relay = courier.start(broker.url())
    kit.until(lambda: len(reader.arrived) >= 50, "the first messages")
    broker.signal(signal.SIGSTOP)
    producer.publish(100)
    kit.until(lambda: "no answer in time" in relay.log(), "the deadline to hold")
    broker.signal(signal.SIGCONT)
    kit.until(lambda: len(reader.arrived) >= 150, "the rest")
    finish(shop, courier, producer, broker.url(), reader)


def test_shut_out_while_running(server, shop, courier, producer, witness):
    """The password changes, and the broker comes back with the new one; then it learns ours again."""
    broker = server()
    broker.end()
    broker.configure("", f"allow_anonymous false\n{broker.passwords(relay='right-one', witness='pw')}")
    broker.start()
    reader = witness(broker.port, user="witness", password="pw")
    url = broker.url(login="relay:right-one@")
    producer.publish(50)
    relay = courier.start(url)
    kit.until(lambda: len(reader.arrived) >= 50, "the first messages")
    broker.end()
    broker.passwords(relay="another", witness="pw")
    broker.start()
    producer.publish(50)
    kit.until(lambda: "Not authorized (0x87)" in relay.log() or "Bad user name" in relay.log(), "the relay to be shut out")
    assert "right-one" not in relay.log()
    broker.passwords(relay="right-one", witness="pw")
    broker.signal(signal.SIGHUP)
    kit.until(lambda: len(reader.arrived) >= 100, "the rest")
    finish(shop, courier, producer, url, reader)


def test_slow_and_silent_network(server, shop, courier, producer, witness):
    broker = server()
    reader = witness(broker.port)
    with Proxy(broker.port) as proxy:
        proxy.plan(Fault(rate=60000))
        producer.publish(200)
        relay = courier.start(f"mqtt://127.0.0.1:{proxy.port}/shop/{{type}}")
        kit.until(lambda: len(reader.arrived) >= 200, "messages through the slow network")
        proxy.stall()
        producer.publish(50)
        kit.until(lambda: "no answer in time" in relay.log(), "the deadline to hold")
        proxy.flow()
        proxy.cut()
        kit.until(lambda: len(reader.arrived) >= 250, "the rest")
        relay.end()
        finish(shop, courier, producer, f"mqtt://127.0.0.1:{proxy.port}/shop/{{type}}", reader)


def test_cut_in_the_middle(server, shop, courier, producer, witness):
    """A cut after ever more bytes, of the messages and of the answers: what is acknowledged is there."""
    broker = server()
    reader = witness(broker.port)
    with Proxy(broker.port) as proxy:
        producer.publish(120)
        proxy.plan(Fault(cut_up=20), Fault(cut_down=3), Fault(cut_up=600), Fault(cut_down=20), Fault(cut_up=2500),
                   Fault(cut_down=60))
        url = f"mqtt://127.0.0.1:{proxy.port}/shop/{{type}}"
        relay = courier.start(url, "--batch", 20)
        kit.until(lambda: len(reader.arrived) >= 120, "the messages")
        relay.end()
        finish(shop, courier, producer, url, reader)


def test_too_slow_for_the_deadline(server, probe, witness):
    """What did not go out in time goes nowhere later: the broker has only what was sent before the deadline."""
    broker = server()
    reader = witness(broker.port)
    with Proxy(broker.port) as proxy:
        proxy.default = Fault(rate=50_000, reset=False)
        out = probe(f"mqtt://127.0.0.1:{proxy.port}/{{type}}", 2000, 10, 3)
    acked = int(re.search(r"acked (\d+)", out)[1])
    assert "publish timedout " in out and "rejected 0 retry 0 " in out and acked < 2000, out
    assert acked <= len(reader.read()) < 2000


def test_several_hosts(server, probe):
    broker = server()
    assert "publish ok acked 1 " in probe(f"mqtt://127.0.0.1:1,127.0.0.1:{broker.port}/x")
    out = probe("mqtt://127.0.0.1:1,nowhere.invalid:1883/x", 1, 5)
    assert out.startswith("connect conn") and "nowhere.invalid" in out, out
