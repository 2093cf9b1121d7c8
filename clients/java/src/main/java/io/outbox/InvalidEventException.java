// SPDX-License-Identifier: Apache-2.0
package io.outbox;

/** An event that cannot be published: which field is wrong, why, and what to do. Nothing was written. */
public final class InvalidEventException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;
    private final String field;

    InvalidEventException(String field, String reason, Object... args) {
        super(field + ": " + String.format(reason, args));
        this.field = field;
    }

    /** As the column of outbox_message: {@code content_type}; {@code payload} for both payloads. */
    public String field() {
        return field;
    }
}
