# SPDX-License-Identifier: Apache-2.0
"""What may happen to a daemon, its databases and its brokers; each returns what it was, for the count."""
import contextlib
import signal
import subprocess
import time

from kit import BINARY, PATIENCE


class Faults:
    """All take from the same random numbers, so that a seed tells one story as far as the machine allows."""

    def __init__(self, rng, daemon, sources, redis, nats, file):
        self.rng, self.daemon, self.sources = rng, daemon, {source.name: source for source in sources}
        self.redis, self.nats, self.file = redis, nats, file
        self.targets = ("events", "copy", "audit")

    def outbox(self, *args):
        """As an operator would; the database may be away just now, so every answer will do but a crash."""
        done = subprocess.run([BINARY, *args, "--config", self.daemon.config], capture_output=True, timeout=PATIENCE,
                              check=False)
        assert 0 <= done.returncode < 64, f"outbox {args}: exit {done.returncode}: {done.stderr.decode()}"
        assert b"Sanitizer" not in done.stderr, done.stderr.decode()
        return done

    def some_source(self):
        return self.rng.choice(sorted(self.sources))

    # ---- processes -------------------------------------------------------------------------------

    def daemon_killed(self):
        """With messages in flight, if some are within a second: a broker that does not answer helps."""
        stuck = self.rng.choice([None, self.redis, self.nats])
        if stuck:
            stuck.stop()
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline and not any(source.in_flight() for source in self.sources.values()):
            pass
        self.daemon.kill()
        if stuck:
            stuck.go_on()
        time.sleep(self.rng.uniform(0, 1))
        self.daemon.start()

    def daemon_stopped(self):
        self.daemon.signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(.2, 4))  # also longer than its lease
        self.daemon.signal(signal.SIGCONT)

    def daemon_ended(self):
        self.daemon.end()
        self.daemon.start()

    def broker_killed(self):
        broker = self.rng.choice([self.redis, self.nats])
        broker.kill()
        time.sleep(self.rng.uniform(0, 1.5))
        broker.restart()

    def broker_stopped(self):
        broker = self.rng.choice([self.redis, self.nats])
        broker.stop()
        time.sleep(self.rng.uniform(.1, 2))
        broker.go_on()

    # ---- databases -------------------------------------------------------------------------------

    def postgres_in_trouble(self):
        self.sources["postgres"].shop.trouble(self.rng)

    def sqlite_locked(self):
        with contextlib.closing(self.sources["sqlite"].shop.connect()) as db:
            db.execute("BEGIN IMMEDIATE")
            time.sleep(self.rng.uniform(.2, 3))
            db.execute("ROLLBACK")

    # ---- what brokers say ------------------------------------------------------------------------

    @contextlib.contextmanager
    def asking_redis(self):
        """It may be loading its file still."""
        from redis import exceptions  # pylint: disable=import-outside-toplevel
        client = self.redis.client()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                client.ping()
                break
            except (exceptions.ConnectionError, exceptions.BusyLoadingError, exceptions.TimeoutError):
                assert time.monotonic() < deadline, "Redis does not come back"
                time.sleep(.05)
        with contextlib.closing(client):
            yield client

    def redis_full(self):
        with self.asking_redis() as client:
            client.config_set("maxmemory", 1)
            time.sleep(self.rng.uniform(.2, 2))
            client.config_set("maxmemory", 0)

    def redis_read_only(self):
        with self.asking_redis() as client:
            client.replicaof("127.0.0.1", 1)  # nobody is there
            time.sleep(self.rng.uniform(.2, 2))
            client.replicaof("NO", "ONE")

    def stream_in_the_way(self):
        """Messages fail for good; a person finds out, clears the way and requeues them. Each change is one transaction:
        what the relay adds in between must not be overwritten."""
        with self.asking_redis() as client:
            if not client.exists(self.redis.stream):
                return
            client.pipeline().rename(self.redis.stream, "aside").set(self.redis.stream, "not a stream").execute()
            time.sleep(self.rng.uniform(.5, 2))
            client.pipeline().rename("aside", self.redis.stream).execute()  # overwrites
        self.requeue()

    def file_rotated(self):
        self.file.rotate()

    # ---- operators -------------------------------------------------------------------------------

    def requeue(self):
        for source in self.sources:
            self.outbox("requeue", "--state", "failed", "--source", source, "--yes", "--reason", "soak")

    def paused(self):
        source, target = self.some_source(), self.rng.choice(self.targets)
        self.outbox("pause", target, "--source", source, "--reason", "soak")
        time.sleep(self.rng.uniform(.2, 2))
        self.outbox("resume", target, "--source", source)

    def deferred(self):
        self.outbox("defer", "--until", f"+{self.rng.choice([1, 2, 5])}s", "--target", self.rng.choice(self.targets),
                    "--key", "k1", "--source", self.some_source(), "--yes", "--reason", "soak")

    def purged(self):
        self.outbox("purge", "--delivered-before", "0s", "--source", self.some_source(), "--yes")

    def reload_storm(self):
        for _ in range(self.rng.randrange(3, 12)):
            self.daemon.configure(batch=self.rng.choice([20, 50, 500]), rate=self.rng.choice(["none", "2000/s"]))
            self.daemon.signal(signal.SIGHUP)
            time.sleep(self.rng.uniform(0, .1))

    # ---- the end ---------------------------------------------------------------------------------

    def all(self):
        return [self.daemon_killed, self.daemon_stopped, self.daemon_ended, self.broker_killed, self.broker_stopped,
                self.postgres_in_trouble, self.sqlite_locked, self.redis_full, self.redis_read_only,
                self.stream_in_the_way, self.file_rotated, self.paused, self.deferred, self.purged, self.reload_storm]

    def make_peace(self):
        for source in self.sources:
            for target in self.targets:
                self.outbox("resume", target, "--source", source)
        self.requeue()
