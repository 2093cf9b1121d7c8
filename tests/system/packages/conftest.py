"""Fresh roots of Debian for each file of tests."""
import pytest

from root import Root


@pytest.fixture(name="root", scope="module")
def _root(tmp_path_factory):
    with Root(tmp_path_factory.mktemp("root")) as root:
        yield root
