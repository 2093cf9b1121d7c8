"""What these tests share with those of the command line and of the crashes is imported from there."""
import os
import sys

SOURCE = os.environ.get("OUTBOX_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..", ".."))
for folder in ("system/cli", "system/integration", "support"):
    sys.path.insert(0, os.path.join(SOURCE, "tests", folder))
