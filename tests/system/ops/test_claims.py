# SPDX-License-Identifier: Apache-2.0
"""A claim among many that wait reads what it takes, not what waits, also where the statistics know nothing of it."""
import pytest

from places import place

MANY = 40000
CLAIM = 500
MESSAGES = ("INSERT INTO outbox_message (type, key, payload) SELECT 'order.placed', 'k' || (i % {}), '{{}}'"
            " FROM generate_series(1, {}) i")
FAILED = ("INSERT INTO outbox_detour (target, seq, id, key, lane, state, attempts, last_status_at)"
          " SELECT 'partner', seq, id, key, 0, 'failed', 5, '2000-01-01' FROM outbox_message")
REQUEUED = "UPDATE outbox_detour SET state = 'pending', why = 'retry', next_attempt_at = '2000-01-01'"
PICKS = f"SELECT count(*) FROM outbox_picks('partner', 0, false, false, pg_current_snapshot(), now(), {CLAIM})"
READ = "SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'outbox_detour'"


@pytest.mark.parametrize("keys", [5000, 20])
def test_reads_what_it_takes(keys, tmp_path, request):
    shop = place("postgres", tmp_path, request)
    with shop.db() as db:
        db.execute("ALTER TABLE outbox_detour SET (autovacuum_enabled = off)")
        db.execute(MESSAGES.format(keys, MANY))
        db.execute(FAILED)
        db.execute("ANALYZE outbox_detour")
        db.execute(REQUEUED)
    with shop.db() as db:
        for setting in "enable_seqscan", "enable_bitmapscan", "enable_sort":  # as outbox_advance() has them
            db.execute(f"SET {setting} = off")
        db.execute("SET plan_cache_mode = force_generic_plan")
        db.execute("BEGIN")
        assert db.execute(PICKS).fetchone()[0] == CLAIM
        read = db.execute(READ).fetchone()[0]
    print(f"{read} read for a claim of {CLAIM}")
    assert read < 50 * CLAIM


def test_few_parked_ones_come_along(tmp_path, request):
    """More where the key has just delivered: else every refusal writes back all that waits behind it."""
    shop = place("postgres", tmp_path, request)
    with shop.db() as db:
        db.execute(MESSAGES.format(1, 100))
        db.execute("INSERT INTO outbox_detour (target, seq, id, key, lane, state, why, next_attempt_at, n, last_status_at)"
                   " SELECT 'partner', seq, id, key, 0, 'pending', 'parked', NULL, NULL, now() FROM outbox_message")
        db.execute("UPDATE outbox_detour SET why = 'retry', attempts = 1, next_attempt_at = '2000-01-01' WHERE seq = 1")
        assert db.execute(PICKS).fetchone()[0] == 1 + 3
        db.execute("UPDATE outbox_detour SET state = 'delivered', why = NULL, next_attempt_at = NULL, n = 7 WHERE seq <= 4")
        db.execute("UPDATE outbox_detour SET next_attempt_at = '2000-01-01' WHERE seq = 5")
        assert db.execute(PICKS).fetchone()[0] == 1 + 3  # another receipt delivered them
        assert db.execute(PICKS.replace(f"{CLAIM})", f"{CLAIM}, 7)")).fetchone()[0] == 1 + 8
        db.execute("UPDATE outbox_detour SET why = 'retry', next_attempt_at = '2000-01-01' WHERE state = 'pending'")
        assert db.execute(PICKS).fetchone()[0] == 96  # due, not parked: all of them
