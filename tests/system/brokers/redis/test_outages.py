# SPDX-License-Identifier: Apache-2.0
"""A server that dies, stops, fills up, changes its mind about us, or becomes a replica. Nothing is lost or charged."""
import os

import kit
from proxy import Fault, Proxy
from rig import charged, entries, judge

RESTARTS = 20 if os.environ.get("OUTBOX_TEST_ALL") else 5


def arrived(server, stream="events"):
    return server.client().xlen(stream)


def finish(server, shop, courier, producer, url, *extra):
    """End the relays, drain, and judge; returns the duplicates."""
    for relay in courier.relays:
        if not relay.dead:
            relay.end()
    ledger = producer.finish()
    courier.drain(url, *extra)
    assert charged(shop) == 0
    return judge(ledger, entries(server.client()))


def test_killed_under_load(server, shop, courier, producer):
    redis = server()
    relay = courier.start(redis.url(), "--batch", 50)
    producer.start(RESTARTS * 150)
    for _ in range(RESTARTS):
        before = arrived(redis)
        kit.until(lambda: arrived(redis) > before + 50 or not producer.busy(), "messages")
        redis.kill()
        redis.start()
    kit.until(lambda: not producer.busy(), "the producer")
    assert not relay.dead
    # Each kill may repeat what was in flight.
    assert finish(redis, shop, courier, producer, redis.url()) <= RESTARTS * 50


def test_stopped_server(server, shop, courier, producer):
    redis = server()
    producer.publish(50)
    relay = courier.start(redis.url())
    kit.until(lambda: arrived(redis) >= 50, "the first messages")
    redis.stop()
    producer.publish(100)
    kit.until(lambda: "no answer in time" in relay.log(), "the deadline to hold")
    redis.go_on()
    kit.until(lambda: arrived(redis) >= 150, "the rest")
    finish(redis, shop, courier, producer, redis.url())


def test_out_of_memory(server, shop, courier, producer):
    redis = server("maxmemory-policy noeviction")
    producer.publish(100)
    courier.drain(redis.url())
    redis.client().config_set("maxmemory", "1mb")
    producer.publish(100)
    relay = courier.start(redis.url())
    kit.until(lambda: "OOM" in relay.log(), "the relay to notice")
    assert arrived(redis) == len(judged_prefix(producer, redis))
    redis.client().config_set("maxmemory", "0")
    kit.until(lambda: arrived(redis) >= 200, "the rest")
    # What was refused was not sent: nothing comes twice.
    assert finish(redis, shop, courier, producer, redis.url()) == 0


def judged_prefix(producer, redis):
    """What arrived is the beginning of what was committed."""
    seen = [fields["id"].decode() for fields in entries(redis.client())]
    assert set(seen) <= {m.id for m in producer.ledger.committed}
    return set(seen)


def test_it_becomes_a_replica_and_comes_back(server, shop, courier, producer):
    redis, other = server(), server()
    producer.publish(50)
    relay = courier.start(redis.url())
    kit.until(lambda: arrived(redis) >= 50, "the first messages")
    # Of a server that is not there, so that it keeps its own data.
    other.kill()
    redis.client().replicaof("127.0.0.1", other.port)
    producer.publish(50)
    kit.until(lambda: "replica" in relay.log(), "the relay to notice")
    assert arrived(redis) == len(judged_prefix(producer, redis))
    redis.client().replicaof("no", "one")
    kit.until(lambda: arrived(redis) >= 100, "the rest")
    assert finish(redis, shop, courier, producer, redis.url()) == 0


def test_the_first_primary_of_several_hosts_is_taken(server, shop, courier, producer):
    replica, primary = server(), server()
    replica.client().replicaof("127.0.0.1", primary.port)
    producer.publish(50)
    hosts = f"redis://127.0.0.1:{replica.port},127.0.0.1:{primary.port}/"
    courier.drain(hosts)
    assert judge(producer.finish(), entries(primary.client())) == 0


def test_replicas_confirm_or_nothing_is_sent(server, shop, courier, producer):
    primary, replica = server(), server()
    url = primary.url("?wait=1")
    producer.publish(50)
    relay = courier.start(url)
    kit.until(lambda: "wait=1" in relay.log(), "the relay to miss the replica")
    assert arrived(primary) == 0
    replica.client().replicaof("127.0.0.1", primary.port)
    kit.until(lambda: arrived(primary) >= 50, "the messages")
    relay.end()
    courier.drain(url)
    # What is settled is on the replica too, at once.
    assert judge(producer.finish(), entries(replica.client())) == 0
    assert charged(shop) == 0


def test_min_replicas_refuses_before_writing(server, shop, courier, producer):
    redis = server()
    redis.client().config_set("min-replicas-to-write", "1")
    producer.publish(50)
    relay = courier.start(redis.url())
    kit.until(lambda: "NOREPLICAS" in relay.log(), "the relay to notice")
    assert arrived(redis) == 0
    redis.client().config_set("min-replicas-to-write", "0")
    kit.until(lambda: arrived(redis) >= 50, "the messages")
    assert finish(redis, shop, courier, producer, redis.url()) == 0


def test_wrong_password(server, shop, courier, producer):
    redis = server("requirepass right-one")
    producer.publish(60)
    for login, word in (("", "NOAUTH"), (":wrong-one@", "WRONGPASS"), ("nobody:wrong-one@", "WRONGPASS")):
        relay = courier.start(redis.url("", login))
        kit.until(lambda: word in relay.log(), "the relay to be refused")  # pylint: disable=cell-var-from-loop
        assert "wrong-one" not in relay.log()
        relay.end()
    courier.drain(redis.url("", ":right-one@"))
    assert charged(shop) == 0
    assert judge(producer.finish(), entries(redis.client(password="right-one"))) == 0


def test_revoked_while_running(server, shop, courier, producer):
    redis = server()
    client = redis.client()
    allow = ("ACL", "SETUSER", "relay", "on", ">pw", "~events", "+xadd", "+info", "+ping")
    client.execute_command(*allow)
    url = redis.url("", "relay:pw@")
    producer.publish(50)
    relay = courier.start(url)
    kit.until(lambda: arrived(redis) >= 50, "the first messages")
    client.execute_command("ACL", "SETUSER", "relay", "-xadd")
    producer.publish(50)
    kit.until(lambda: "NOPERM" in relay.log(), "the relay to notice")
    client.execute_command("ACL", "DELUSER", "relay")
    kit.until(lambda: any(b"auth" in entry for entry in client.execute_command("ACL", "LOG")),
              "the relay to be shut out")
    assert arrived(redis) == len(judged_prefix(producer, redis))
    client.execute_command(*allow)
    kit.until(lambda: arrived(redis) >= 100, "the rest")
    assert finish(redis, shop, courier, producer, url) == 0


def test_slow_and_silent_network(server, shop, courier, producer):
    redis = server()
    with Proxy(redis.port) as proxy:
        proxy.plan(Fault(rate=60000))
        producer.publish(200)
        relay = courier.start(f"redis://127.0.0.1:{proxy.port}/")
        kit.until(lambda: arrived(redis) >= 200, "messages through the slow network")
        proxy.stall()
        producer.publish(50)
        kit.until(lambda: "no answer in time" in relay.log(), "the deadline to hold")
        proxy.flow()
        proxy.cut()
        kit.until(lambda: arrived(redis) >= 250, "the rest")
        finish(redis, shop, courier, producer, redis.url())


def test_cut_in_the_middle_of_a_pipeline(server, shop, courier, producer):
    """A cut after ever more bytes, of the commands and of the answers: what is acknowledged is there."""
    redis = server()
    with Proxy(redis.port) as proxy:
        producer.publish(120)
        # The greeting takes 146 bytes up and some 600 down.
        proxy.plan(Fault(cut_up=600), Fault(cut_down=700), Fault(cut_up=2500), Fault(cut_down=900))
        relay = courier.start(f"redis://127.0.0.1:{proxy.port}/", "--batch", 20)
        kit.until(lambda: arrived(redis) >= 120, "the messages")
        relay.end()
        finish(redis, shop, courier, producer, redis.url())
