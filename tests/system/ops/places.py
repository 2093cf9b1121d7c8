# SPDX-License-Identifier: Apache-2.0
"""A business database with an outbox, on SQLite and on PostgreSQL, as tests/system/cli has them."""
import importlib.util
import os

import pytest

from shell import Shop

# another folder has a module of this name
_PATH = os.path.join(os.path.dirname(__file__), "..", "cli", "pgshop.py")
_SPEC = importlib.util.spec_from_file_location("cli_pgshop", _PATH)
pgshop = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(pgshop)


def bare_place(kind, folder, request):
    """Without an outbox yet. kind: sqlite or postgres; skipped with the reason where there is no server."""
    if kind == "sqlite":
        made = Shop(folder)
    else:
        reason = pgshop.reason_to_skip()
        if reason:
            pytest.skip(reason)
        made = pgshop.PgShop(folder)
        request.addfinalizer(made.drop)
    made.kind = kind
    return made


def place(kind, folder, request):
    made = bare_place(kind, folder, request)
    made.run("init")
    return made


def relay(shop, *options):
    """All that there is, to events."""
    return shop.run("relay", "--to", "events=file:out.jsonl", "--until-idle", *options)


def delivered(shop):
    """How many each target has delivered."""
    with shop.db() as db:
        rows = db.execute("SELECT target, count(*) FROM outbox_delivery WHERE state = 'delivered' GROUP BY target")
        return dict(tuple(row) for row in rows)
