"""What the check-* scripts share: our C files, and their text without comments and strings."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()

_NOISE = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def files(*folders, suffixes=(".c", ".h")):
    """C files below the folders, as paths relative to the root, sorted."""
    found = []
    for folder in folders:
        found += [p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.suffix in suffixes]
    return sorted(found)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def code(text, keep_includes=False):
    """The text with comments and literals blanked; line numbers stay the same."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    if keep_includes:
        return re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.DOTALL)
    return _NOISE.sub(blank, text)


class Report:
    """Collects findings and prints them as file:line: what; remedy."""

    def __init__(self, name):
        self.name = name
        self.count = 0

    def add(self, path, line, what, remedy):
        self.count += 1
        print(f"{path}:{line}: {what}; {remedy}")

    def finish(self, checked):
        if self.count:
            print(f"{self.name}: {self.count} found in {checked}")
            sys.exit(1)
        print(f"{self.name}: ok, {checked}")
        sys.exit(0)
