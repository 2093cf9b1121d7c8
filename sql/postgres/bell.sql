-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: the doorbell. Off until outbox_doorbell(true).
--
-- Publishers send NOTIFY only when a relay sleeps, because NOTIFY makes committing transactions wait for each
-- other. An advisory lock shows that a relay sleeps: a publisher takes it in shared mode until its transaction
-- ends, which costs next to nothing; a relay that goes to sleep holds it exclusively. A publisher that cannot
-- share it rings. Before it sleeps the relay tries to take the lock: if it cannot, publishers are in flight
-- and it polls again; if it can, it polls once more. So no message is missed. If several relays sleep, one of
-- them has the lock, and all hear the bell.
-- Not for publishers that use PREPARE TRANSACTION, which NOTIFY forbids.

-- From the schema's name, which a dump keeps; locks and channels belong to one database anyway.
CREATE OR REPLACE FUNCTION outbox_bell_key() RETURNS bigint
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
	SELECT hashtextextended('outbox bell ' || current_schema(), 0)
$$;

CREATE OR REPLACE FUNCTION outbox_bell_channel() RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
	SELECT 'outbox_bell_' || outbox_bell_key()
$$;

CREATE OR REPLACE FUNCTION outbox_ring() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_catalog.pg_notify(TG_ARGV[0], '');
	RETURN NULL;
END $$;

-- Install or remove the bell. Returns whether that changed anything.
CREATE OR REPLACE FUNCTION outbox_doorbell(p_on boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	there boolean := EXISTS (SELECT FROM pg_trigger
		WHERE tgrelid = 'outbox_message'::regclass AND tgname = 'outbox_bell');
BEGIN
	IF p_on = there THEN
		RETURN false;
	ELSIF p_on THEN
		EXECUTE format('CREATE TRIGGER outbox_bell AFTER INSERT ON outbox_message FOR EACH STATEMENT'
			' WHEN (NOT pg_try_advisory_xact_lock_shared(%s)) EXECUTE FUNCTION outbox_ring(%L)',
			outbox_bell_key(), outbox_bell_channel());
	ELSE
		DROP TRIGGER outbox_bell ON outbox_message;
	END IF;
	RETURN true;
END $$;

CREATE OR REPLACE FUNCTION outbox_bell_hangs() RETURNS boolean
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
	SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'outbox_message'::regclass AND tgname = 'outbox_bell')
$$;

-- Called before outbox_listen(), in a transaction of its own: rings count from its commit on.
CREATE OR REPLACE FUNCTION outbox_hear() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	-- a sleeping relay whose machine is dead must not keep the bell for hours
	PERFORM set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),
		set_config('tcp_keepalives_count', '3', false);
	EXECUTE format('LISTEN %I', outbox_bell_channel());
END $$;

-- A relay is about to sleep. 1: publishers ring from now on; look once more, then sleep. 2: the same, because another
-- relay sleeps; it passes the bell on when it releases it. 0: publishers are active; do not sleep now.
CREATE OR REPLACE FUNCTION outbox_listen() RETURNS integer
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
	bell bigint := outbox_bell_key();
BEGIN
	IF pg_try_advisory_lock(bell) THEN
		RETURN 1;
	END IF;
	RETURN CASE WHEN EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND classid = (bell >> 32 & 4294967295)::oid AND objid = (bell & 4294967295)::oid AND objsubid = 1)
		THEN 2 ELSE 0 END;
END $$;

-- The relay is awake: publishers need not ring any more. Relays that rely on its bell are woken: one of them may take it.
CREATE OR REPLACE FUNCTION outbox_awake() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	IF pg_advisory_unlock(outbox_bell_key()) THEN
		PERFORM pg_notify(outbox_bell_channel(), '');
	END IF;
END $$;
