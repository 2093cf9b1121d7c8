# SPDX-License-Identifier: Apache-2.0
"""What the packages contain and what they say about themselves."""
import re
import shutil
import subprocess

import pytest

from built import LIBRARIES, PACKAGES, ROOT, deb, debs, dependencies, field, run

VERSION = re.search(r"^ +version: '(.*)',$", (ROOT / "meson.build").read_text(), re.M).group(1)
UNITS = ["outbox-relay.service", "outbox-relay@.service"]


def files(package):
    return set(line.split(None, 5)[5] for line in run("dpkg-deb", "--contents", deb(package)).splitlines())


def text(package, path):
    tree = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb(package)], capture_output=True, check=True).stdout
    return subprocess.run(["tar", "--extract", "--to-stdout", "." + path], input=tree, capture_output=True, check=True).stdout.decode()


def test_each_has_the_version_of_the_program():
    for package in PACKAGES:
        assert field(deb(package), "Version").rpartition("-")[0] == VERSION


def test_the_program_comes_with_all_that_belongs_to_it():
    manual = {f"./usr/share/man/man1/{page.name.removesuffix('.scd')}.gz" for page in (ROOT / "docs" / "man").glob("*.scd")}
    pages = {f"./usr/share/doc/outbox/{page.relative_to(ROOT / 'docs')}" for folder in (".", "stores", "transports")
             for page in (ROOT / "docs" / folder).glob("*.md")}
    units = {f"./lib/systemd/system/{unit}" for unit in UNITS}
    expected = manual | pages | units | {"./usr/bin/outbox", "./etc/outbox/outbox.yaml"}
    assert len(manual) >= 7 and len(pages) > 20
    assert expected - files("outbox") == set()


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_is_that_of_contrib_but_for_the_user(unit):
    ours = (ROOT / "contrib" / unit).read_text()
    assert text("outbox", f"/lib/systemd/system/{unit}") == ours.replace("DynamicUser=yes\n", "")


def test_the_page_of_alerts_is_where_they_link_to():
    assert text("outbox", "/usr/share/doc/outbox/runbook.md") == (ROOT / "docs" / "runbook.md").read_text()
    assert "file:///usr/share/doc/outbox/runbook.md" in run("strings", unpack("outbox") / "usr/bin/outbox")


def unpack(package):
    folder = debs() / "unpacked" / package
    if folder.exists():
        shutil.rmtree(folder)
    folder.parent.mkdir(exist_ok=True)
    run("dpkg-deb", "--extract", deb(package), folder)
    return folder


@pytest.mark.parametrize("package", LIBRARIES)
def test_a_library_is_named_after_its_soname(package):
    library = next(unpack(package).rglob("*.so.*.*"))
    soname = re.search(r"SONAME.*\[(.*)\]", run("readelf", "-d", library)).group(1)
    assert soname.replace(".so.", "") == package


def test_the_library_depends_on_no_broker():
    assert set(dependencies(deb("liboutbox1"))) == {"libc6", "libjansson4", "libpq5", "libsqlite3-0", "libzstd1"}
    assert {"librdkafka1", "librabbitmq4", "libhiredis0.14"} <= set(dependencies(deb("liboutbox-brokers1")))


def test_lintian_is_content():
    lintian = shutil.which("lintian") or pytest.skip("lintian is not installed")
    root = ["--allow-root"]
    done = subprocess.run([lintian, *root, "-EI", "--pedantic", "--fail-on", "error,warning,info,pedantic,experimental",
                           next(debs().glob("*.changes"))], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stdout.strip(), done.stdout + done.stderr
