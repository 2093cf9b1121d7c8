# SPDX-License-Identifier: Apache-2.0
"""An oracle that never fails proves nothing: break a good delivery in every way and see it told."""
import json

import pytest

from kit import BATCH
from oracle import expect_good, judge


@pytest.fixture
def good(make):
    """A ledger and the consumer's lines of an undisturbed relay."""
    _, crew, producer = make()
    producer.publish(120)
    ledger = producer.finish()
    crew.drain()
    verdict = expect_good(ledger, crew, 0)
    assert verdict.delivered == len(ledger.committed)
    return ledger, crew.lines()


def told(ledger, lines, allowed=0):
    problems = judge(ledger, lines, allowed).problems
    return [problem.split(":")[0] for problem in problems]


def place_of(lines, message):
    return next(i for i, line in enumerate(lines) if message.id.encode() in line)


def test_good_delivery_is_good(good):
    ledger, lines = good
    assert told(ledger, lines) == []


def test_deleted_line_is_a_loss(good):
    ledger, lines = good
    del lines[len(lines) // 2]
    assert told(ledger, lines) == ["lost"]


def test_duplicates_are_told_beyond_the_bound_only(good):
    ledger, lines = good
    lines += lines[:BATCH]
    assert told(ledger, lines, BATCH) == []
    assert told(ledger, lines + lines[:1], BATCH) == ["duplicates"]


def test_swapped_lines_of_a_key_are_out_of_order(good):
    ledger, lines = good
    key = next(message.key for message in ledger.committed if message.key)
    a, b = [place_of(lines, m) for m in ledger.committed if m.key == key][:2]
    lines[a], lines[b] = lines[b], lines[a]
    assert told(ledger, lines) == ["out of order"]


def test_swapped_lines_of_two_keys_are_fine(good):
    ledger, lines = good
    keys = [json.loads(line).get("partitionkey") for line in lines]
    i = next(i for i in range(len(lines) - 1) if keys[i] != keys[i + 1])
    lines[i], lines[i + 1] = lines[i + 1], lines[i]
    assert told(ledger, lines) == []


def test_line_of_a_rolled_back_message_is_a_phantom(good):
    ledger, lines = good
    message = ledger.committed[0]
    line = lines[place_of(lines, message)]
    lines.append(line.replace(message.id.encode(), ledger.rolled_back[0].id.encode()))
    assert told(ledger, lines) == ["phantom, rolled back"]


def test_line_that_nobody_published_is_a_phantom(good):
    ledger, lines = good
    message = ledger.committed[0]
    line = lines[place_of(lines, message)]
    lines.append(line.replace(message.id.encode(), b"nobody"))
    assert told(ledger, lines) == ["phantom, never published"]


@pytest.mark.parametrize("form,was,becomes", [
    ("application/json", b" ]}", b"]}"),
    ("application/json", b"1.50", b"1.5"),
    ("text/plain", b"number", b"Number"),
    ("application/octet-stream", b"A", b"B"),
])
def test_changed_payload_is_told(good, form, was, becomes):
    ledger, lines = good
    i, data = next((i, line.index(b'"data', line.index(form.encode()))) for i, line in enumerate(lines)
                   if form.encode() in line and was in line[line.index(form.encode()):])
    lines[i] = lines[i][:data] + lines[i][data:].replace(was, becomes, 1)
    assert told(ledger, lines) == ["changed on the way"]


def test_changed_header_is_told(good):
    ledger, lines = good
    message = next(m for m in ledger.committed if m.headers)
    i = place_of(lines, message)
    lines[i] = lines[i].replace(b"quoted", b"changed", 1)
    assert told(ledger, lines) == ["changed on the way"]


def test_torn_line_is_told(good):
    ledger, lines = good
    lines[-1] = lines[-1][:-10]
    assert told(ledger, lines) == ["not a CloudEvents line", "lost"]
