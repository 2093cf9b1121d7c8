// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** A database with an outbox. All tests share the two of them. */
public final class Place {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Path FOLDER;
    private static final Map<String, Place> PLACES = new HashMap<>();

    static {
        try {
            FOLDER = Files.createTempDirectory("outbox-java");
        } catch (IOException failed) {
            throw new ExceptionInInitializerError(failed);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(Place::remove));
    }

    final String store;
    public final String jdbc;
    final String table;
    public final Outbox outbox;

    private Place(String store, String jdbc, String table, Outbox outbox) {
        this.store = store;
        this.jdbc = jdbc;
        this.table = table;
        this.outbox = outbox;
        program("init", "--store", store);
        program("init", "--inbox", "--store", store);
    }

    public static synchronized Stream<Place> all() {
        PLACES.computeIfAbsent("sqlite", name -> new Place("sqlite:" + FOLDER + "/a b#1.db",
                "jdbc:sqlite:file:" + FOLDER + "/a%20b%231.db?journal_mode=WAL&busy_timeout=20000&transaction_mode=IMMEDIATE",
                "outbox_message", new Outbox()));
        String postgres = System.getenv("OUTBOX_TEST_POSTGRES");
        if (postgres != null)
            PLACES.computeIfAbsent("postgres", name -> new Place(postgres + "?schema=of%20Java",
                    postgres.replaceFirst("postgres://(.*)@(.*)", "jdbc:postgresql://$2?user=$1"), "\"of Java\".outbox_message",
                    new Outbox().schema("of Java")));
        return PLACES.values().stream();
    }

    boolean isSqlite() {
        return jdbc.startsWith("jdbc:sqlite:");
    }

    @Override
    public String toString() {
        return isSqlite() ? "sqlite" : "postgres";
    }

    /** A connection with a transaction. */
    Connection begin() throws SQLException {
        Connection connection = DriverManager.getConnection(jdbc);
        connection.setAutoCommit(false);
        return connection;
    }

    static void execute(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    void execute(String sql) throws SQLException {
        try (Connection connection = DriverManager.getConnection(jdbc)) {
            execute(connection, sql);
        }
    }

    /** What a query for one number says to somebody else. */
    long number(String sql) throws SQLException {
        try (Connection connection = DriverManager.getConnection(jdbc); Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getLong(1);
        }
    }

    public long count() throws SQLException {
        return number("SELECT count(*) FROM " + table);
    }

    /** The keys of what the transaction will publish. */
    List<Object> keys(Connection connection) throws SQLException {
        return outbox.published(connection, null, null).stream().map(event -> event.get("key")).toList();
    }

    /** Delivers all that is in the log and returns it by id. */
    Map<String, JsonNode> events() throws IOException {
        Path file = FOLDER.resolve(this + ".jsonl");
        program("relay", "--store", store, "--to", "events=file:" + file, "--until-idle");
        Map<String, JsonNode> events = new HashMap<>();
        for (String line : Files.readAllLines(file)) {
            JsonNode event = JSON.readTree(line);
            events.put(event.get("id").asText(), event);
        }
        return events;
    }

    static void program(String... arguments) {
        List<String> command = new ArrayList<>(List.of(System.getenv().getOrDefault("OUTBOX_BIN", "outbox")));
        command.addAll(List.of(arguments));
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
            String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (process.waitFor() != 0)
                throw new AssertionError(command + ": " + said);
        } catch (IOException | InterruptedException failed) {
            throw new AssertionError(failed);
        }
    }

    private static void remove() {
        try (Stream<Path> files = Files.list(FOLDER)) {
            for (Path file : files.toList())
                Files.delete(file);
            Files.delete(FOLDER);
        } catch (IOException left) {
            System.err.println(left);
        }
    }
}
