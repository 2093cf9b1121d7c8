// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import java.net.URI;
import java.net.URISyntaxException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

/** What an open transaction has published. */
final class Published {
    private static final List<String> TEXTS = List.of("id", "type", "key", "kind", "content_type", "source", "subject", "topic",
            "correlation_id", "causation_id", "traceparent", "headers");
    private static final List<String> TIMES = List.of("event_time", "due_at", "expires_at");

    private Published() {
    }

    static List<Event> read(Connection connection, String table, String type, String key) throws SQLException {
        boolean sqlite = Outbox.isSqlite(connection);
        String mine = sqlite ? "seq > " + committed(connection) : "xid = pg_current_xact_id()";
        String sql = "SELECT * FROM " + table + " WHERE " + mine
                + " AND type = coalesce(?, type) AND (key = ? OR ? = 1) ORDER BY seq";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, type);
            statement.setString(2, key);
            statement.setInt(3, key == null ? 1 : 0);
            List<Event> events = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next())
                    events.add(event(row, sqlite));
            }
            return events;
        }
    }

    private static Event event(ResultSet row, boolean sqlite) throws SQLException {
        Event event = Event.of(null).published(row.getBoolean("published")).priority(row.getInt("priority"));
        for (String column : TEXTS)
            event.set(column, row.getString(column));
        for (String column : TIMES) {
            if (row.getObject(column) != null)
                event.set(column, sqlite ? Instant.EPOCH.plus(row.getLong(column), ChronoUnit.MICROS)
                        : row.getObject(column, OffsetDateTime.class).toInstant());
        }
        String text = row.getString("payload");
        return text != null ? event.payload(text) : event.payload(row.getBytes("payload_bin"));
    }

    /**
     * The end of the log as a connection of its own sees it, to which an open transaction does not exist. SQLite has one
     * writer at a time: what lies behind is the transaction's.
     */
    private static long committed(Connection connection) throws SQLException {
        String file;
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("SELECT file FROM pragma_database_list WHERE name = 'main'")) {
            file = row.getString(1);
        }
        if (file == null || file.isEmpty())
            throw new IllegalStateException("a database in memory has one connection only, which cannot tell; use a file");
        try (Connection other = DriverManager.getConnection("jdbc:sqlite:file:" + new URI(null, null, file, null).getRawPath() + "?mode=ro");
                Statement statement = other.createStatement();
                ResultSet row = statement.executeQuery("SELECT coalesce(max(seq), 0) FROM outbox_message")) {
            return row.getLong(1);
        } catch (URISyntaxException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
