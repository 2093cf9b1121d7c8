// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** As much of JSON as a client needs that has no library for it: is a text JSON, and what is an object of strings. */
final class Json {
    private static final int DEPTH_MAX = 500;
    private static final Pattern SCALAR = Pattern.compile(
            "true|false|null|-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?");

    private final String text;
    private final Matcher scalar;
    private int at;

    private Json(String text) {
        this.text = text;
        this.scalar = SCALAR.matcher(text);
    }

    static boolean is(String text) {
        Json json = new Json(text);
        return json.value(0) && json.peek() == -1;
    }

    /** The next character that is no blank, or -1 at the end. */
    private int peek() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0)
            at++;
        return at < text.length() ? text.charAt(at) : -1;
    }

    private boolean take(char c) {
        boolean found = peek() == c;
        if (found)
            at++;
        return found;
    }

    private boolean value(int depth) {
        if (depth > DEPTH_MAX)
            return false;
        switch (peek()) {
        case '{':
            return list('}', () -> string() && take(':') && value(depth + 1));
        case '[':
            return list(']', () -> value(depth + 1));
        case '"':
            return string();
        default:
            boolean found = scalar.region(at, text.length()).lookingAt();
            if (found)
                at = scalar.end();
            return found;
        }
    }

    private interface Part {
        boolean read();
    }

    private boolean list(char end, Part part) {
        at++;
        if (take(end))
            return true;
        do {
            if (!part.read())
                return false;
        } while (take(','));
        return take(end);
    }

    private boolean string() {
        if (!take('"'))
            return false;
        for (; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '"') {
                at++;
                return true;
            }
            if (c < ' ' || (c == '\\' && !escape()))
                return false;
        }
        return false;
    }

    /** Ends at the last character of the escape. */
    private boolean escape() {
        at++;
        if (at >= text.length() || text.charAt(at) != 'u')
            return at < text.length() && "\"\\/bfnrt".indexOf(text.charAt(at)) >= 0;
        int from = at + 1;
        at += 4;
        return at < text.length() && text.substring(from, at + 1).matches("[0-9a-fA-F]{4}");
    }

    static String object(Map<?, ?> members) {
        StringBuilder out = new StringBuilder();
        members.forEach((name, value) -> {
            quote(out.append(out.length() == 0 ? '{' : ','), (String) name);
            quote(out.append(':'), (String) value);
        });
        return out.append('}').toString();
    }

    private static void quote(StringBuilder out, String text) {
        out.append('"');
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\')
                out.append('\\').append(c);
            else if (c < ' ')
                out.append(String.format("\\u%04x", (int) c));
            else
                out.append(c);
        }
        out.append('"');
    }
}
