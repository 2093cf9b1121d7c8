# SPDX-License-Identifier: Apache-2.0
"""Who we are: the URL, the environment, the shared file, the machine's metadata service (played by a stand-in)."""
import datetime
import json
import os

import pytest
from conftest import KEYS, NOBODY, Probe, message
from peer import closed_port, refused, stored

FILE = """# of two people
[default]
aws_access_key_id = AKIDDEFAULT
aws_secret_access_key=default/secret

[ other ]
aws_secret_access_key = other/secret
aws_access_key_id = AKIDOTHER
aws_session_token = other-token
"""


def key_of(request):
    return request.headers["authorization"].split("Credential=")[1].split("/")[0]


def secret_file(folder, text, name="credentials", mode=0o600):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return str(path)


class Machine:
    """The metadata service; `ends` is when the credentials end."""

    def __init__(self, seconds=3600):
        self.asked, self.given, self.broken = [], 0, None
        self.seconds = seconds

    def __call__(self, request):
        self.asked.append((request.method, request.path))
        if self.broken:
            return self.broken, ""
        if request.method == "PUT":
            assert request.path == "/latest/api/token"
            assert request.headers["x-aws-ec2-metadata-token-ttl-seconds"] == "21600"
            return 200, "session=="
        if request.headers.get("x-aws-ec2-metadata-token") != "session==":
            return 401, ""
        roles = "/latest/meta-data/iam/security-credentials/"
        if request.path == roles:
            return 200, "relay-role\n"
        assert request.path == roles + "relay-role"
        self.given += 1
        ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.seconds)
        return 200, json.dumps({"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": f"ASIA{self.given}",
                                "SecretAccessKey": "machine/secret", "Token": f"token-{self.given}",
                                "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")})


@pytest.fixture
def machine(peer):
    """machine(seconds) starts a metadata service; what it is told, and the environment that leads to it."""
    def make(seconds=3600):
        script = Machine(seconds)
        server = peer(script)
        return script, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{server.port}",
                        "AWS_EC2_METADATA_DISABLED": ""}
    return make


def test_the_first_that_is_there_counts(peer, probe, machine, tmp_path):
    server = peer()
    _, env = machine()
    in_url = server.url().replace("://", "://AKIDURL@") + "&password_file=" + secret_file(tmp_path, "url/secret\n", "url")
    shared = {"AWS_SHARED_CREDENTIALS_FILE": secret_file(tmp_path, FILE)}
    for url, more, key, secret in ((in_url, {**shared, **KEYS}, "AKIDURL", "url/secret"),
                                   (server.url(), {**shared, **KEYS}, "AKIDEXAMPLE", KEYS["AWS_SECRET_ACCESS_KEY"]),
                                   (server.url(), shared, "AKIDDEFAULT", "default/secret"),
                                   (server.url(), {**shared, "AWS_PROFILE": "other"}, "AKIDOTHER", "other/secret"),
                                   (server.url(), {}, "ASIA1", "machine/secret")):
        assert probe(url, env={**env, **more}).publish([message("m")]).verdicts == ["ACKED"]
        assert key_of(server.requests[-1]) == key and server.requests[-1].signature_holds(secret)
        token = {"AKIDOTHER": "other-token", "ASIA1": "token-1"}.get(key)
        assert server.requests[-1].headers.get("x-amz-security-token") == token


def test_the_usual_file(peer, probe, tmp_path):
    (tmp_path / ".aws").mkdir()
    secret_file(tmp_path / ".aws", FILE)
    server = peer()
    assert probe(server.url(), env={"HOME": str(tmp_path)}).publish([message("m")]).verdicts == ["ACKED"]
    assert key_of(server.requests[-1]) == "AKIDDEFAULT"


@pytest.mark.parametrize("env,words", [
    ({}, "no credentials"),
    ({"AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}, "/nowhere"),
    ({"AWS_PROFILE": "nobody", "AWS_SHARED_CREDENTIALS_FILE": "FILE"}, "nobody"),
    ({"AWS_SHARED_CREDENTIALS_FILE": "OPEN"}, "chmod 600"),
    ({"AWS_SHARED_CREDENTIALS_FILE": "HALF"}, "secret"),
    ({"AWS_ACCESS_KEY_ID": "AKID", "AWS_SHARED_CREDENTIALS_FILE": "FILE"}, "without its secret"),
    ({"AWS_SECRET_ACCESS_KEY": "secret", "AWS_SHARED_CREDENTIALS_FILE": "FILE"}, "without its secret"),
    ({"AWS_SHARED_CREDENTIALS_FILE": "NO_ID"}, "without its secret"),
    ({"AWS_SHARED_CREDENTIALS_FILE": "TOKEN"}, "without its secret"),
    ({"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "a\nb"}, "control character"),
])
def test_credentials_that_are_none(peer, probe, machine, tmp_path, env, words):
    # the machine has some, which must not take the place of what is missing
    env = {**env, **machine()[1]} if words == "without its secret" else env
    files = {"FILE": secret_file(tmp_path, FILE), "OPEN": secret_file(tmp_path, FILE, "open", 0o644),
             "HALF": secret_file(tmp_path, "[default]\naws_access_key_id = AKID\n", "half"),
             "NO_ID": secret_file(tmp_path, "[default]\naws_secret_access_key = secret\n", "no-id"),
             "TOKEN": secret_file(tmp_path, "[default]\naws_session_token = token\n", "token")}
    if env.get("AWS_SHARED_CREDENTIALS_FILE") == "OPEN" and os.geteuid() == 0:
        os.chown(files["OPEN"], 12345, 12345)
        words = "another user"
    p = probe(peer().url(), env={name: files.get(value, value) for name, value in env.items()}, connected=False)
    answer = p.connect()
    assert answer.status in ("auth", "config") and words in answer.text, answer


def test_the_machine_is_asked_before_they_end(peer, probe, machine):
    server = peer()
    script, env = machine(seconds=200)  # less than five minutes: at each batch
    p = probe(server.url(), env=env)
    assert script.given == 1
    for number in (2, 3):
        assert p.publish([message("m")]).verdicts == ["ACKED"]
        assert key_of(server.requests[-1]) == f"ASIA{number}"
    # as long as they hold, nobody needs newer ones
    script.broken = 500
    assert p.publish([message("m")]).verdicts == ["ACKED"]
    assert key_of(server.requests[-1]) == "ASIA3"
    assert {method for method, _ in script.asked} == {"PUT", "GET"}
    # and nobody asks again at each batch
    asked = len(script.asked)
    assert p.publish([message("m")]).verdicts == ["ACKED"] and len(script.asked) == asked


def test_ended_ones_are_not_used(peer, probe, machine):
    server = peer()
    script, env = machine(seconds=-10)
    p = probe(server.url(), env=env)
    script.broken = 500
    answer = p.publish([message("m")])
    assert answer.status == "auth" and answer.verdicts == ["UNSET"] and not server.requests, answer
    script.broken = None
    assert p.publish([message("m")]).verdicts == ["ACKED"]


def test_long_ones_are_kept(peer, probe, machine):
    script, env = machine()
    p = probe(peer().url(), env=env)
    for _ in range(3):
        assert p.publish([message("m")]).verdicts == ["ACKED"]
    assert script.given == 1


@pytest.mark.parametrize("status,words", [(404, "role"), (403, "403"), (500, "500")])
def test_a_machine_that_says_no(peer, probe, machine, status, words):
    script, env = machine()
    script.broken = status
    answer = probe(peer().url(), env=env, connected=False).connect()
    assert answer.status == "auth" and words in answer.text, answer


@pytest.mark.parametrize("text", ["", "{", "[]", '{"Code":"Failed"}', '{"AccessKeyId":"A","SecretAccessKey":"B"}',
                                  '{"AccessKeyId":"A","SecretAccessKey":"B","Expiration":"soon"}', "x" * 20000])
def test_a_machine_that_says_nonsense(peer, probe, text):
    machine = peer(lambda request: (200, text if request.path.endswith("role") else "role"))
    env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{machine.port}", "AWS_EC2_METADATA_DISABLED": ""}
    assert probe(peer().url(), env=env, connected=False).connect().status == "auth"


def test_no_machine_at_all(peer, probe):
    env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{closed_port()}", "AWS_EC2_METADATA_DISABLED": ""}
    answer = probe(peer().url(), env=env, connected=False).connect()
    assert answer.status == "auth" and "AWS_ACCESS_KEY_ID" in answer.text


def test_an_expired_token_is_an_outage_until_there_are_newer_ones(peer, probe, tmp_path):
    server = peer(lambda request: stored(request) if key_of(request) == "AKIDOTHER" else refused(request, "ExpiredToken"))
    path = secret_file(tmp_path, FILE)
    p = probe(server.url(), env={"AWS_SHARED_CREDENTIALS_FILE": path})
    answer = p.publish([message("m-1"), message("m-2")])
    assert answer.status == "auth" and answer.verdicts == ["UNSET"] * 2 and "newer" in answer.text, answer
    secret_file(tmp_path, FILE.replace("AKIDDEFAULT", "AKIDOTHER"))
    p.ask("disconnect")
    assert p.connect().status == "ok"
    assert p.publish([message("m-1"), message("m-2")]).verdicts == ["ACKED"] * 2


@pytest.mark.parametrize("host,region", [("sqs.eu-west-1.amazonaws.com", "eu-west-1"),
                                         ("sqs-fips.us-east-2.amazonaws.com", "us-east-2"),
                                         ("vpce-1-2.sqs.us-gov-west-1.vpce.amazonaws.com", "us-gov-west-1"),
                                         ("sqs.cn-north-1.amazonaws.com.cn", "cn-north-1")])
def test_the_host_tells_the_region(host, region):
    # open() alone says it: without a region it fails
    one = Probe(f"sqs://{host}/1/orders", env={**NOBODY})
    assert one.opened.status == "ok", region
    one.close()


def test_a_host_that_does_not_tell_it():
    for url in ("sqs://localhost/1/orders", "sqs://sqs.eu-west-1.amazonaws.com.example/1/orders", "sqs://sqs.amazonaws.com/1/orders", "sqs://amazonaws.com/1/orders"):
        one = Probe(url, env={**NOBODY})
        assert one.opened.status == "config" and "region" in one.opened.text, one.opened
        one.process.wait(20)
