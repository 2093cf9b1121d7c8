// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;

/**
 * Publishes events in the caller's own transaction, by plain SQL, and handles received ones once, on PostgreSQL and
 * SQLite. An event exists if and only if its transaction commits; the relay ({@code outbox relay}) delivers it.
 * Immutable, and for any number of threads.
 */
public final class Outbox {
    /** SQLite takes this many parameters in one statement, PostgreSQL twice as many. */
    private static final int PARAMETERS_MAX = 32766;
    private static final ThreadLocal<Received> HANDLING = new ThreadLocal<>();
    private static final SecureRandom RANDOM = new SecureRandom();

    private final String prefix;
    private final Supplier<String> trace;

    public Outbox() {
        this("", () -> null);
    }

    private Outbox(String prefix, Supplier<String> trace) {
        this.prefix = prefix;
        this.trace = trace;
    }

    /** The schema of the outbox's tables, as in {@code ?schema=} of the store's URL; otherwise the search path decides. */
    public Outbox schema(String schema) {
        return new Outbox('"' + schema.replace("\"", "\"\"") + "\".", trace);
    }

    /** What gives the traceparent (W3C) of what goes on, or null, for events without one: see io.outbox.otel. */
    public Outbox trace(Supplier<String> trace) {
        return new Outbox(prefix, trace);
    }

    /** Publishes an event and returns its id. */
    public String publish(Connection connection, Event event) throws SQLException {
        return publish(connection, List.of(event)).get(0);
    }

    /**
     * Publishes events in their order and in one statement, and returns their ids. An event whose own id is in the log
     * already is not written again.
     *
     * @throws NoTransactionException the connection is in autocommit
     * @throws InvalidEventException an event has a field that is wrong; none is written
     */
    public List<String> publish(Connection connection, List<Event> events) throws SQLException {
        List<Event> rows = new ArrayList<>();
        boolean own = false;
        for (Event event : events) {
            Event row = complete(event.copy());
            Check.event(row);
            own |= event.get("id") != null;
            rows.add(row);
        }
        boolean sqlite = isSqlite(connection);
        checkTransaction(connection, sqlite);
        if (rows.isEmpty())
            return List.of();
        Set<String> columns = new LinkedHashSet<>();
        rows.forEach(row -> columns.addAll(row.values.keySet()));
        int most = PARAMETERS_MAX / columns.size();
        for (int from = 0; from < rows.size(); from += most)
            insert(connection, sqlite, own, List.copyOf(columns), rows.subList(from, Math.min(rows.size(), from + most)));
        return rows.stream().map(row -> (String) row.get("id")).toList();
    }

    /** Fills in what an event does not say itself: an id, the trace, and what it follows from. */
    private Event complete(Event event) {
        Received received = HANDLING.get();
        boolean traced = event.get("traceparent") != null || event.get("headers") instanceof Map<?, ?> headers
                && headers.keySet().stream().anyMatch(name -> "traceparent".equalsIgnoreCase((String) name));
        String current = traced ? null : trace.get();
        if (Check.isTraceparent(current))
            event.traceparent(current);
        else if (!traced && received != null)
            event.traceparent(received.traceparent());
        if (received != null) {
            event.values.putIfAbsent("causation_id", received.id());
            event.values.putIfAbsent("correlation_id", received.correlationId() != null ? received.correlationId() : received.id());
        }
        event.values.putIfAbsent("id", newId(Instant.now()));
        if ("event".equals(event.get("kind")))
            event.kind(null);
        return event;
    }

    private void insert(Connection connection, boolean sqlite, boolean own, List<String> columns, List<Event> rows)
            throws SQLException {
        String row = ", (" + "?, ".repeat(columns.size() - 1) + "?)";
        String sql = "INSERT INTO " + prefix + "outbox_message (" + String.join(", ", columns) + ") VALUES "
                + row.repeat(rows.size()).substring(2) + (own ? " ON CONFLICT (id) DO NOTHING" : "");
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            int parameter = 1;
            for (Event event : rows)
                for (String column : columns)
                    statement.setObject(parameter++, sqlValue(event.get(column), sqlite));
            statement.executeUpdate();
        }
    }

    private static Object sqlValue(Object value, boolean sqlite) {
        if (value instanceof Map<?, ?> headers)
            return Json.object(headers);
        if (value instanceof Instant time)
            return sqlite ? (Object) ChronoUnit.MICROS.between(Instant.EPOCH, time) : time.atOffset(ZoneOffset.UTC);
        return sqlite && value instanceof Boolean ? (Object) 1 : value;
    }

    static boolean isSqlite(Connection connection) throws SQLException {
        return connection.getMetaData().getDatabaseProductName().equals("SQLite");
    }

    /**
     * SQLite ends a transaction by itself when it has no room, is interrupted, or an ON CONFLICT ROLLBACK says so, and
     * then every statement commits by itself: only a BEGIN that is refused proves that one is open.
     */
    private static void checkTransaction(Connection connection, boolean sqlite) throws SQLException {
        if (connection.getAutoCommit())
            throw new NoTransactionException("call setAutoCommit(false) first, and commit() at the end");
        if (!sqlite)
            return;
        try (Statement statement = connection.createStatement()) {
            try {
                statement.execute("BEGIN");
            } catch (SQLException open) {
                return;
            }
            statement.execute("ROLLBACK");
        }
        throw new NoTransactionException("SQLite has ended it after an error; call rollback() and start again");
    }

    /** A handler's work. */
    @FunctionalInterface
    public interface Work<E extends Exception> {
        void run() throws E;
    }

    /** What {@link #handling} returns: closing it ends the handling. */
    @FunctionalInterface
    public interface Handling extends AutoCloseable {
        @Override
        void close();
    }

    /**
     * Until it is closed, what this thread publishes follows from {@code received}: causation_id becomes its id,
     * correlation_id its correlation_id or, if it has none, its id, and traceparent its traceparent, unless an event has
     * its own.
     */
    public static Handling handling(Received received) {
        Received before = HANDLING.get();
        HANDLING.set(received);
        return () -> HANDLING.set(before);
    }

    /**
     * Does the work for the first delivery of a message to a consumer, and not for a repeat; returns which it was. That it
     * was received is written in the caller's transaction: roll it back when the work fails, and the message is handled when
     * it comes again. Another transaction with the same message waits until this one ends.
     * {@code outbox init --inbox} makes the table.
     */
    public <E extends Exception> boolean once(Connection connection, String consumer, Received received, Work<E> work)
            throws SQLException, E {
        if (!accept(connection, consumer, received.id()))
            return false;
        try (Handling handling = handling(received)) {
            work.run();
        }
        return true;
    }

    /** The first half of {@link #once}: is this the first delivery of the message to the consumer? */
    public boolean accept(Connection connection, String consumer, String id) throws SQLException {
        boolean sqlite = isSqlite(connection);
        checkTransaction(connection, sqlite);
        String sql = sqlite ? "INSERT INTO outbox_inbox (consumer, id) VALUES (?, ?) ON CONFLICT DO NOTHING"
                : "SELECT " + prefix + "outbox_inbox_accept(?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, consumer);
            statement.setString(2, id);
            if (sqlite)
                return statement.executeUpdate() == 1;
            try (var rows = statement.executeQuery()) {
                return rows.next() && rows.getBoolean(1);
            }
        }
    }

    /**
     * For tests: what the open transaction will publish when it commits, and nothing else. A null stands for any type, any
     * key.
     */
    public List<Event> published(Connection connection, String type, String key) throws SQLException {
        return Published.read(connection, prefix + "outbox_message", type, key);
    }

    /** A UUIDv7 as the library makes it: milliseconds, then the fraction of one, then randomness. */
    private static String newId(Instant now) {
        byte[] random = new byte[8];
        RANDOM.nextBytes(random);
        long micros = ChronoUnit.MICROS.between(Instant.EPOCH, now);
        long high = micros / 1000 << 16 | 7 << 12 | micros % 1000 * 4096 / 1000;
        return new UUID(high, ByteBuffer.wrap(random).getLong() >>> 2 | 1L << 63).toString();
    }
}
