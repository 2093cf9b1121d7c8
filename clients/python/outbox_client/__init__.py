# SPDX-License-Identifier: Apache-2.0
"""Publish to an outbox, and consume each message once, in the database transaction that is yours already."""
from .connection import NoTransaction
from .inbox import accept, once
from .message import InvalidMessage, Message, handling
from .publish import publish, publish_all
from .testing import published
from .webhook import InvalidSignature, verify

__all__ = ["InvalidMessage", "InvalidSignature", "Message", "NoTransaction", "accept", "handling", "once", "publish",
           "publish_all", "published", "verify"]
