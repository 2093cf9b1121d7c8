# SPDX-License-Identifier: Apache-2.0
"""Domain events of SQLAlchemy's entities: what is in entity.events is published with the entity."""
from __future__ import annotations

from itertools import chain
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session

from .publish import publish_all


def harvest(sessions: Any = Session, *, schema: str | None = None) -> None:
    """sessions: a sessionmaker, a Session class or a Session. Entities append Messages to a list `events` of theirs; each
    flush, savepoint and commit publishes them, in the order of the entities in the session, and a rollback drops them."""
    def publish_events(session: Session, *_: Any, conn: Any = None) -> None:
        lists = [events for events in (getattr(entity, "events", None) for entity in session) if events]
        messages = list(chain.from_iterable(lists))
        if messages:
            publish_all(conn or session, messages, schema=schema)
        for events in lists:
            events.clear()

    def before_savepoint(session: Session, transaction: Any) -> None:
        if transaction.nested:  # what was collected before is the outer transaction's, and its SAVEPOINT is yet to come
            publish_events(session, conn=transaction.parent.connection(None))

    def drop_all(session: Session, *_: Any) -> None:
        for entity in session:
            drop(session, entity)

    def drop(_: Session, entity: Any) -> None:
        if getattr(entity, "events", None):
            entity.events.clear()

    event.listen(sessions, "before_flush", publish_events)
    event.listen(sessions, "before_commit", publish_events)
    event.listen(sessions, "after_transaction_create", before_savepoint)
    event.listen(sessions, "after_soft_rollback", drop_all)
    event.listen(sessions, "pending_to_transient", drop)
    event.listen(sessions, "persistent_to_transient", drop)
