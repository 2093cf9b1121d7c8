// SPDX-License-Identifier: Apache-2.0
package io.outbox;

/** The message that a handler works on; all but the id may be null. What is published meanwhile follows from it. */
public record Received(String id, String correlationId, String traceparent) {
    public static Received of(String id) {
        return new Received(id, null, null);
    }
}
