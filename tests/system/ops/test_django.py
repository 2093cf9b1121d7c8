# SPDX-License-Identifier: Apache-2.0
"""What docs/stores/migrations.md says of Django, with Django itself: the outbox as a migration and a model, there and back."""
import json
import re
import subprocess
import sys

import pytest

from before import ROOT
from fetch import fetch
from places import pgshop

PACKAGE = "django==4.2.16"
DRIVER = "psycopg[binary]==3.1.20"  # Django takes psycopg 3 where it finds one, and Debian's is too old for it
SETTINGS = """
SECRET_KEY, USE_TZ, DEFAULT_AUTO_FIELD = "x", True, "django.db.models.BigAutoField"
INSTALLED_APPS = ["shop"]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.postgresql", "NAME": "{name}", "USER": "postgres", "HOST": "127.0.0.1", "PORT": {port}}}}}
"""
ORDER = "import uuid\n\nfrom django.db import models\n\n\nclass Order(models.Model):\n    total = models.IntegerField()\n\n\n"
MIGRATION = "import pathlib\nfrom django.db import migrations\n\n\n"
USE = """
import django; django.setup()
from django.db import transaction
from shop.models import Order, OutboxMessage
with transaction.atomic():
    Order.objects.create(total=7)
    OutboxMessage.objects.create(id="m1", type="order.placed", key="1", payload='{"total":7}')
try:
    with transaction.atomic():
        OutboxMessage.objects.create(id="gone", type="order.placed", payload="{}")
        raise RuntimeError
except RuntimeError:
    pass
"""


@pytest.fixture(name="project")
def make_project(tmp_path, request):
    folder, driver = fetch(PACKAGE, "django"), fetch(DRIVER, "psycopg")
    if not folder or not driver:
        pytest.skip(f"{PACKAGE} and {DRIVER} cannot be fetched here: the package index cannot be reached")
    reason = pgshop.reason_to_skip()
    if reason:
        pytest.skip(reason)
    shop = pgshop.PgShop(tmp_path)
    request.addfinalizer(shop.drop)
    page = (ROOT / "docs" / "stores" / "migrations.md").read_text()
    migration, model = re.findall(r"^```python django\n(.*?)^```$", page, re.M | re.S)
    app = tmp_path / "shop"
    (app / "migrations").mkdir(parents=True)
    for path, text in ((tmp_path / "settings.py", SETTINGS.format(name=shop.name, port=shop.server.port)), (app / "__init__.py", ""),
                       (app / "models.py", ORDER + model), (app / "migrations" / "__init__.py", ""),
                       (app / "migrations" / "0001_outbox.py", MIGRATION + migration)):
        path.write_text(text)
    for name, how in (("outbox.sql", ()), ("outbox_down.sql", ("--drop",))):
        script = shop.run("sql", "postgres", "--schema", "outbox", *how, people=False).out
        (app / "migrations" / name).write_text(script)
    shop.env.update(PYTHONPATH=f"{folder}:{driver}:{tmp_path}", DJANGO_SETTINGS_MODULE="settings")
    return shop


def django(shop, *args, ok=True):
    done = subprocess.run([sys.executable, *args], cwd=shop.folder, env=shop.env, capture_output=True, text=True, check=False)
    assert not ok or done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def manage(shop, *args):
    return django(shop, "-m", "django", *args)


def test_there_and_back(project):
    project.env["OUTBOX_STORE"] = project.url + "?schema=outbox"
    manage(project, "makemigrations", "shop")
    manage(project, "migrate")
    assert "No changes" in manage(project, "makemigrations", "--check", "--dry-run"), "the outbox is none of its models"
    django(project, "-c", USE)
    project.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    assert [(line["id"], json.dumps(line["data"])) for line in project.lines()] == [("m1", '{"total": 7}')]
    assert project.run("doctor", code=None).code == 0
    assert "outbox_" not in manage(project, "inspectdb")
    manage(project, "migrate", "shop", "zero")
    assert project.sql("SELECT count(*) FROM pg_class WHERE relname LIKE 'outbox%' AND relname <> 'outbox_pkey'") == [(0,)]
