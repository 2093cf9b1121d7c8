/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_SEND_H
#define RELAY_SEND_H

#include "relay/lane.h"

/*
 * This lane's turn has come, in LANE_SEND: publish the next round of its batch, together with those of other lanes that
 * may share the call, or find that there is none left.
 */
void send_rounds(struct link *link, const struct lanes *lanes, struct lane *lane, outbox_time now);

#endif
