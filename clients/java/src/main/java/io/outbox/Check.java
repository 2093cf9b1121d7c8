// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The limits of the library. The database refuses fewer things, and what it does not would fail at its delivery. */
final class Check {
    private static final int TYPE_MAX = 500, KEY_MAX = 255, TEXT_MAX = 2048, HEADERS_MAX = 64, HEADER_BYTES_MAX = 32768,
            PAYLOAD_MAX = 16 << 20;
    private static final Instant FIRST = Instant.EPOCH, LAST = Instant.parse("9999-12-31T23:59:59.999999Z");
    private static final Pattern CONTROL = Pattern.compile("\\p{Cc}"),
            TRACE = Pattern.compile("([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?"),
            MEDIA_TYPE = Pattern.compile("[!-.0-~][ -.0-~]*/[!-:<-~][ -~]*"),
            NAME = Pattern.compile("[0-9A-Za-z!#$%&'*+.^_`|~-]+"),
            RESERVED = Pattern.compile("(?i)(outbox-|ce-|ce_).*|content-type");

    private Check() {
    }

    static void event(Event event) {
        if (event.get("type") == null)
            throw new InvalidEventException("type", "is missing; name what happened, such as order.placed");
        event.values.forEach((column, value) -> {
            if (value instanceof String text && !column.equals("payload"))
                text(column, text);
            else if (value instanceof Instant time && (time.isBefore(FIRST) || time.isAfter(LAST)))
                throw new InvalidEventException(column, "%s is not between 1970 and the year 9999", time);
        });
        known(event);
        headers(event);
        payload(event);
    }

    private static void text(String column, String value) {
        int max = column.equals("type") ? TYPE_MAX : column.equals("key") || column.equals("id") ? KEY_MAX : TEXT_MAX;
        int length = value.codePointCount(0, value.length());
        if (value.isEmpty())
            throw new InvalidEventException(column, "is empty; give it a value or leave it out");
        if (length > max)
            throw new InvalidEventException(column, "\"%.60s\" has %d characters, at most %d; shorten it", value, length, max);
        if (CONTROL.matcher(value).find())
            throw new InvalidEventException(column, "\"%.60s\" has a control character; remove it", value);
        if (!isUnicode(value))
            throw new InvalidEventException(column, "\"%.60s\" has half of a surrogate pair; repair it", value);
    }

    /** Half of a pair becomes a question mark in the database. */
    private static boolean isUnicode(String text) {
        return StandardCharsets.UTF_8.newEncoder().canEncode(text);
    }

    private static void known(Event event) {
        Object kind = event.get("kind"), type = event.get("content_type"), trace = event.get("traceparent");
        int priority = event.get("priority") instanceof Integer given ? given : 0;
        if (kind != null && !kind.equals("event") && !kind.equals("command"))
            throw new InvalidEventException("kind", "\"%.60s\" is unknown; use event or command", kind);
        if (priority < -100 || priority > 100)
            throw new InvalidEventException("priority", "%d is out of range; use -100 to 100, 0 is normal", priority);
        if (type != null && !MEDIA_TYPE.matcher((String) type).matches())
            throw new InvalidEventException("content_type", "\"%.60s\" is not a media type; write one such as application/json", type);
        if (trace != null && !isTraceparent((String) trace))
            throw new InvalidEventException("traceparent", "\"%.60s\" is not a W3C trace context; write "
                    + "00-<32 hex digits>-<16 hex digits>-<2 hex digits>", trace);
        if (event.get("due_at") instanceof Instant due && event.get("expires_at") instanceof Instant expires
                && !expires.isAfter(due))
            throw new InvalidEventException("expires_at", "%s is not after due_at, %s; it could never be delivered", expires, due);
    }

    static boolean isTraceparent(String value) {
        Matcher part = TRACE.matcher(value == null ? "" : value);
        return part.matches() && !part.group(1).equals("ff") && !part.group(2).matches("0+") && !part.group(3).matches("0+")
                && (!part.group(1).equals("00") || part.group(4) == null);
    }

    private static void headers(Event event) {
        if (!(event.get("headers") instanceof Map<?, ?> headers))
            return;
        Set<String> names = new HashSet<>();
        int bytes = 0;
        for (Map.Entry<?, ?> header : headers.entrySet()) {
            String name = (String) header.getKey(), value = (String) header.getValue();
            if (!NAME.matcher(name).matches())
                throw new InvalidEventException("headers", "name \"%.60s\" has a character that headers cannot have; use "
                        + "letters, digits and - . _", name);
            if (RESERVED.matcher(name).matches())
                throw new InvalidEventException("headers", "name \"%.60s\" is reserved (outbox-*, ce-*, ce_*, content-type); "
                        + "choose another or use the event's own field", name);
            if (value == null || !isUnicode(value) || value.chars().anyMatch(c -> c == '\r' || c == '\n' || c == 0))
                throw new InvalidEventException("headers", "the value of \"%.60s\" is missing, or has a line break or a NUL; "
                        + "repair it", name);
            if (!names.add(name.toLowerCase(Locale.ROOT)))
                throw new InvalidEventException("headers", "\"%.60s\" is given twice; keep one of them", name);
            bytes += name.length() + value.getBytes(StandardCharsets.UTF_8).length;
        }
        if (names.contains("traceparent") && event.get("traceparent") != null)
            throw new InvalidEventException("headers", "\"traceparent\" is also set as a field; keep one of them");
        if (names.size() > HEADERS_MAX || bytes > HEADER_BYTES_MAX)
            throw new InvalidEventException("headers", "%d of them with %d bytes, at most %d with %d; remove some",
                    names.size(), bytes, HEADERS_MAX, HEADER_BYTES_MAX);
    }

    private static void payload(Event event) {
        String text = (String) event.get("payload");
        byte[] bytes = (byte[]) event.get("payload_bin");
        if (event.payloads != 1 || (text == null && bytes == null))
            throw new InvalidEventException("payload", "was given %d times; give text or bytes, once", event.payloads);
        int size = text == null ? bytes.length : text.length();
        if (text != null && size <= PAYLOAD_MAX) {
            if (!isUnicode(text) || text.indexOf(0) >= 0)
                throw new InvalidEventException("payload", "has a NUL or half of a surrogate pair; give bytes");
            size = text.getBytes(StandardCharsets.UTF_8).length;
        }
        if (size > PAYLOAD_MAX)
            throw new InvalidEventException("payload", "has %d bytes, at most %d; store it elsewhere and send a reference",
                    size, PAYLOAD_MAX);
        if (text != null && !text.isEmpty() && isJson((String) event.get("content_type")) && !Json.is(text))
            throw new InvalidEventException("payload", "is not JSON; repair it or set another content type");
    }

    /** Must text of this type be JSON? Without a type it must. */
    private static boolean isJson(String contentType) {
        String media = contentType == null ? "/json" : contentType.split(";", 2)[0].strip().toLowerCase(Locale.ROOT);
        return media.endsWith("/json") || media.endsWith("+json");
    }
}
