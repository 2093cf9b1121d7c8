// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * What is published: {@code Event.of("order.placed").key("42").payload(json)}. The type and one payload are required;
 * what is left out, or null, gets the outbox's default.
 */
public final class Event {
    /** By column of outbox_message. */
    final Map<String, Object> values = new LinkedHashMap<>();
    /** How often a payload was given: one is right. */
    int payloads;

    private Event() {
    }

    /** What happened: order.placed. */
    public static Event of(String type) {
        return new Event().set("type", type);
    }

    Event copy() {
        Event copy = new Event();
        copy.values.putAll(values);
        copy.payloads = payloads;
        return copy;
    }

    Event set(String column, Object value) {
        if (value == null)
            values.remove(column);
        else
            values.put(column, value);
        return this;
    }

    /** Text, which must be JSON unless the content type says otherwise. */
    public Event payload(String text) {
        payloads++;
        return set("payload", text);
    }

    /** Bytes: application/octet-stream unless the content type says otherwise. */
    public Event payload(byte[] bytes) {
        payloads++;
        return set("payload_bin", bytes.clone());
    }

    /** Messages of one key are delivered in order. */
    public Event key(String key) {
        return set("key", key);
    }

    /** An id of your own makes a repeat harmless; otherwise it is a new UUIDv7. */
    public Event id(String id) {
        return set("id", id);
    }

    /** {@code event}, the default, or {@code command}. */
    public Event kind(String kind) {
        return set("kind", kind);
    }

    /** Targets that are {@code external} get it, too. */
    public Event published(boolean published) {
        return set("published", published ? true : null);
    }

    /** -100 to 100; 0 is normal. */
    public Event priority(int priority) {
        return set("priority", priority == 0 ? null : priority);
    }

    /** When it happened; otherwise now. */
    public Event eventTime(Instant time) {
        return set("event_time", time);
    }

    /** Not delivered before. */
    public Event dueAt(Instant time) {
        return set("due_at", time);
    }

    /** Not delivered after. */
    public Event expiresAt(Instant time) {
        return set("expires_at", time);
    }

    public Event contentType(String contentType) {
        return set("content_type", contentType);
    }

    public Event source(String source) {
        return set("source", source);
    }

    public Event subject(String subject) {
        return set("subject", subject);
    }

    public Event topic(String topic) {
        return set("topic", topic);
    }

    public Event correlationId(String id) {
        return set("correlation_id", id);
    }

    public Event causationId(String id) {
        return set("causation_id", id);
    }

    public Event traceparent(String traceparent) {
        return set("traceparent", traceparent);
    }

    public Event headers(Map<String, String> headers) {
        return set("headers", headers == null || headers.isEmpty() ? null : new TreeMap<>(headers));
    }

    /** The value of a column of outbox_message, such as {@code correlation_id}; null if it is not given. */
    public Object get(String column) {
        return values.get(column);
    }

    @Override
    public String toString() {
        return values.toString();
    }
}
