-- SPDX-License-Identifier: Apache-2.0
--
-- outbox on PostgreSQL: functions of earlier versions that this one does not have. No program calls them: they were
-- called by other functions or by views, which have been replaced at this point.

-- version 1
DROP FUNCTION IF EXISTS outbox_lane_lock(text, integer);
DROP FUNCTION IF EXISTS outbox_due(text, integer, boolean, boolean, pg_snapshot, timestamptz, bigint);
DROP FUNCTION IF EXISTS outbox_delivered_by(xid8, bigint, text, text, boolean, outbox_receipt, bigint);
DROP FUNCTION IF EXISTS outbox_delivery_receipt(xid8, bigint, text, text, boolean, outbox_receipt);

-- version 2
DROP FUNCTION IF EXISTS outbox_unsettled(outbox_reading, bigint, bigint);
DROP FUNCTION IF EXISTS outbox_unsettled_late(outbox_reading, bigint);
DROP FUNCTION IF EXISTS outbox_count_unsettled(outbox_target, bigint);
DROP FUNCTION IF EXISTS outbox_is_settled_whole(bigint, bigint, outbox_cut[]);
DROP FUNCTION IF EXISTS outbox_old_partitions(outbox_cut[], bigint);
DROP FUNCTION IF EXISTS outbox_purge(timestamptz, timestamptz, bigint, bigint, bigint, text, timestamptz);
DROP FUNCTION IF EXISTS outbox_purge_kept(timestamptz, timestamptz, bigint, bigint, timestamptz);
DROP FUNCTION IF EXISTS outbox_scan_partitions(outbox_cut[], bigint, bigint, bigint, bigint, boolean);
DROP FUNCTION IF EXISTS outbox_check_position(outbox_receipt, bigint, pg_snapshot);
DROP FUNCTION IF EXISTS outbox_check_history(outbox_receipt);
DROP FUNCTION IF EXISTS outbox_rebase_lane(outbox_receipt, bigint, boolean, text, bigint, timestamptz);
DROP FUNCTION IF EXISTS outbox_act_unread(text, integer, integer, bigint, outbox_act_filter);
DROP FUNCTION IF EXISTS outbox_act_select(outbox_act_filter);
DROP FUNCTION IF EXISTS outbox_act_count(outbox_act_filter);
-- programs do call this one: its replacement has one more argument, which may be left out
DROP FUNCTION IF EXISTS outbox_list(text[], text, text, text, text[], text, timestamptz, timestamptz, bigint, text, bigint);

-- version 3
DROP FUNCTION IF EXISTS outbox_kind_takes(text, text, integer, bigint);
DROP FUNCTION IF EXISTS outbox_settle(outbox_receipt, outbox_receipt, outbox_outcomes, boolean);
DROP FUNCTION IF EXISTS outbox_add_route(text, bigint, text[], text, boolean);
DROP FUNCTION IF EXISTS outbox_add_target(text, text, text[], text, boolean, boolean, boolean, integer, bigint, timestamptz);
DROP FUNCTION IF EXISTS outbox_fence(text, integer, text, bigint, timestamptz);
DROP FUNCTION IF EXISTS outbox_position_ahead(outbox_receipt, bigint, pg_snapshot);
DROP FUNCTION IF EXISTS outbox_window_fault(outbox_receipt, bigint, xid8, bigint);
DROP FUNCTION IF EXISTS outbox_cluster_fault(outbox_receipt);
DROP FUNCTION IF EXISTS outbox_history_fault(outbox_receipt, bigint);
DROP FUNCTION IF EXISTS outbox_lanes_fault(text, integer);
DROP FUNCTION IF EXISTS outbox_window(bigint, pg_snapshot, bigint, xid8[], pg_snapshot, bigint, integer, integer, text[], text, boolean,
	bigint, bigint, text);
-- A claim of version 3 that waits for the upgrade goes on after it and would ignore the bands: here it ends, and the
-- relay asks again.
DROP FUNCTION IF EXISTS outbox_lane_view(text, integer, bigint);
DROP FUNCTION IF EXISTS outbox_claim_again(outbox_receipt, outbox_view, timestamptz);
-- programs do call this one, too
DROP FUNCTION IF EXISTS outbox_stretch(bigint, bigint, pg_snapshot, pg_snapshot, integer, integer, text[], text, boolean, boolean);

-- version 4
DROP FUNCTION IF EXISTS outbox_seq_is_from_the_log(bigint);
DROP FUNCTION IF EXISTS outbox_message_defaults();
DROP FUNCTION IF EXISTS outbox_is_blocked(text, text, bigint, boolean, bigint[], timestamptz);
DROP FUNCTION IF EXISTS outbox_choose(outbox_receipt, outbox_view, xid8[], bigint, bigint, timestamptz);
DROP FUNCTION IF EXISTS outbox_claim(outbox_receipt, outbox_request, outbox_receipt, outbox_view, outbox_moment, timestamptz);
DROP FUNCTION IF EXISTS outbox_picks(text, integer, boolean, boolean, pg_snapshot, timestamptz, bigint);
DROP FUNCTION IF EXISTS outbox_run(text, text, bigint, boolean, boolean, pg_snapshot, timestamptz, bigint);

-- version 5
DROP FUNCTION IF EXISTS outbox_window(bigint, pg_snapshot, bigint, xid8[], pg_snapshot, bigint, integer, integer, text[], text, boolean,
	bigint[], bigint, bigint, text);
DROP FUNCTION IF EXISTS outbox_count_with_late(bigint, pg_snapshot, bigint, xid8[], pg_snapshot, bigint, integer, integer, text[], text,
	boolean, bigint[], bigint);
DROP FUNCTION IF EXISTS outbox_read_with_late(bigint, pg_snapshot, bigint, xid8[], pg_snapshot, bigint, integer, integer, text[], text,
	boolean, bigint[], bigint, bigint);
DROP FUNCTION IF EXISTS outbox_delivered_by(xid8, bigint, text, text, boolean, integer, outbox_receipt, bigint);
DROP FUNCTION IF EXISTS outbox_delivery_receipt(xid8, bigint, text, text, boolean, integer, outbox_receipt);
-- programs do call this one: its replacement has one more argument, which may be left out
DROP FUNCTION IF EXISTS outbox_stretch(bigint, bigint, pg_snapshot, pg_snapshot, integer, integer, text[], text, boolean, boolean, bigint[]);
