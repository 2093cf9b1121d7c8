# SPDX-License-Identifier: Apache-2.0
"""What operators do over HTTP, once more on PostgreSQL: with-postgres starts the server."""
# pylint: disable=unused-import
from test_api_act import (console, test_acts_while_the_relay_runs, test_by_filter_in_bounded_steps,
                          test_a_failed_message_is_amended, test_a_finished_message_is_redacted, test_a_scheduled_message_is_cancelled, test_discard_and_defer, test_keys_that_wait, test_pause_and_resume, test_purge, test_readers_do_nothing,
                          test_requeue_by_ids, test_what_fails_again_meanwhile_is_not_taken_twice)
