// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.context.Scope;
import io.outbox.otel.CurrentSpan;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Nothing is published but what is committed, and nothing is handled twice. */
class OutboxTest {
    private static final String TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    private static final String OWN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

    static Event placed(String key) {
        return Event.of("order.placed").key(key).payload("{\"id\":\"" + key + "\"}");
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void rolledBackPublishesNothing(Place place) throws SQLException {
        long before = place.count();
        try (Connection connection = place.begin()) {
            place.outbox.publish(connection, placed("1"));
            var savepoint = connection.setSavepoint();
            place.outbox.publish(connection, placed("2"));
            connection.rollback(savepoint);
            place.outbox.publish(connection, placed("3"));
            assertEquals(List.of("1", "3"), place.keys(connection));
            connection.rollback();
        }
        assertEquals(before, place.count());
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void autocommitIsRefused(Place place) throws SQLException {
        long before = place.count();
        try (Connection connection = DriverManager.getConnection(place.jdbc)) {
            assertThrows(NoTransactionException.class, () -> place.outbox.publish(connection, placed("1")));
            assertThrows(NoTransactionException.class,
                    () -> place.outbox.once(connection, "billing", Received.of("autocommit"), () -> assertTrue(false)));
        }
        assertEquals(before, place.count());
    }

    /** The driver believes that its transaction goes on, while every statement commits by itself. */
    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void whatSqliteHasEndedIsRefused(Place place) throws SQLException {
        assumeTrue(place.isSqlite(), "PostgreSQL's driver knows");
        long before = place.count();
        try (Connection connection = place.begin()) {
            Place.execute(connection, "ROLLBACK");
            assertThrows(NoTransactionException.class, () -> place.outbox.publish(connection, placed("1")));
        }
        assertEquals(before, place.count());
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void publishedIsOfThisTransaction(Place place) throws SQLException {
        try (Connection first = place.begin()) {
            place.outbox.publish(first, placed("before"));
            first.commit();
        }
        Event sent = placed("mine").id("mine-" + place).headers(Map.of("tenant", "a \"c\" \\ \t")).priority(7).published(true);
        // SQLite has one writer: nobody else can publish meanwhile
        try (Connection other = place.isSqlite() ? null : place.begin(); Connection connection = place.begin()) {
            if (other != null)
                place.outbox.publish(other, placed("other"));
            place.outbox.publish(connection, List.of(sent, Event.of("order.paid").key("mine").payload(new byte[] {0, 1})));
            Place.execute(connection, "INSERT INTO " + place.table + " (type, key, payload) VALUES ('t', 'plain SQL', '{}')");
            if (other != null)
                other.commit();
            assertEquals(List.of("mine", "mine", "plain SQL"), place.keys(connection));
            List<Event> found = place.outbox.published(connection, "order.placed", "mine");
            assertEquals(1, found.size());
            assertNotNull(found.get(0).get("event_time"));
            found.get(0).eventTime(null).set("headers", sent.get("headers"));
            assertEquals(sent.values, found.get(0).values);
            assertEquals(List.of(), place.outbox.published(connection, "order.placed", "plain SQL"));
            connection.rollback();
            assertEquals(List.of(), place.keys(connection));
        }
    }

    @Test
    void publishedNeedsAFile() throws SQLException {
        try (Connection connection = DriverManager.getConnection("jdbc:sqlite::memory:")) {
            connection.setAutoCommit(false);
            assertThrows(IllegalStateException.class, () -> new Outbox().published(connection, null, null));
        }
    }

    /** Each of 8 messages twelve times, to four consumers at once; some handlers fail the first time. */
    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void onceAmongParallelConsumers(Place place) throws Exception {
        place.execute("CREATE TABLE effects (id TEXT)");
        List<Integer> failed = Collections.synchronizedList(new ArrayList<>());
        List<Callable<Boolean>> deliveries = IntStream.range(0, 8 * 12).<Callable<Boolean>>mapToObj(i -> () -> {
            try (Connection connection = place.begin()) {
                boolean ran = place.outbox.once(connection, "storm", Received.of("storm " + i % 8), () -> {
                    Place.execute(connection, "INSERT INTO effects VALUES ('" + i % 8 + "')");
                    if (i < 8 && i % 2 == 0)
                        throw new SQLException("of the handler");
                });
                connection.commit();
                return ran;
            } catch (SQLException planned) {
                if (!planned.getMessage().equals("of the handler"))
                    throw planned;
                failed.add(i); // closed without a commit
                return false;
            }
        }).toList();
        ExecutorService consumers = Executors.newFixedThreadPool(4);
        int ran = 0;
        for (Future<Boolean> delivery : consumers.invokeAll(deliveries))
            ran += delivery.get() ? 1 : 0;
        consumers.shutdown();
        assertEquals(8, ran);
        assertEquals(8, place.number("SELECT count(*) FROM effects"));
        assertEquals(8, place.number("SELECT count(DISTINCT id) FROM effects"));
        place.execute("DROP TABLE effects");
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void whatIsHandledIsTheCause(Place place) throws SQLException {
        try (Connection connection = place.begin()) {
            place.outbox.once(connection, "billing", new Received("a", "cart", TRACE),
                    () -> place.outbox.publish(connection, placed("follows")));
            place.outbox.publish(connection, placed("afterwards"));
            List<Event> events = place.outbox.published(connection, null, null);
            for (String column : List.of("causation_id", "correlation_id", "traceparent"))
                assertNull(events.get(1).get(column));
            assertEquals("a", events.get(0).get("causation_id"));
            assertEquals("cart", events.get(0).get("correlation_id"));
            assertEquals(TRACE, events.get(0).get("traceparent"));
        }
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void traceOfTheCurrentSpan(Place place) throws SQLException {
        SpanContext span = SpanContext.create(TRACE.substring(3, 35), TRACE.substring(36, 52), TraceFlags.getSampled(),
                TraceState.getDefault());
        Outbox traced = place.outbox.trace(new CurrentSpan());
        Event event = placed("1").headers(Map.of("Traceparent", OWN));
        try (Connection connection = place.begin()) {
            try (Scope scope = Span.wrap(span).makeCurrent()) {
                traced.publish(connection, List.of(placed("0"), event, placed("2").traceparent(OWN)));
            }
            traced.publish(connection, placed("3"));
            place.outbox.trace(() -> "not one").publish(connection, placed("4"));
            List<Object> found = new ArrayList<>();
            for (Event one : place.outbox.published(connection, null, null))
                found.add(one.get("traceparent"));
            List<Object> wanted = new ArrayList<>(List.of(TRACE, "", OWN, "", ""));
            wanted.replaceAll(one -> one.equals("") ? null : one);
            assertEquals(wanted, found);
        }
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void aBatchIsAllOrNoneAndInOrder(Place place) throws SQLException {
        List<Event> events = new ArrayList<>();
        for (int i = 0; i < 12000; i++) // more than one statement can have
            events.add(placed(Integer.toString(i)));
        events.get(11999).subject("last").id("last-" + place);
        try (Connection connection = place.begin()) {
            List<String> ids = place.outbox.publish(connection, events);
            List<Event> found = place.outbox.published(connection, null, null);
            assertEquals(ids, found.stream().map(event -> event.get("id")).toList());
            assertEquals(events.stream().map(event -> event.get("key")).toList(), place.keys(connection));
            assertEquals("last", found.get(11999).get("subject"));
            assertNull(found.get(11998).get("subject"));
            place.outbox.publish(connection, events.get(11999)); // its id is in the log
            assertThrows(InvalidEventException.class,
                    () -> place.outbox.publish(connection, List.of(placed("good"), Event.of(null))));
            assertEquals(List.of(), place.outbox.publish(connection, List.of()));
            assertEquals(12000, place.keys(connection).size());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "secret", "whsec_AAAA", "whsec_not base64", "whpk_AQEBAQEBAQEBAQEBAQEBAQ==",
        "whsk_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="})
    void whatIsNoKey(String text) {
        var wrong = assertThrows(IllegalArgumentException.class, () -> new WebhookVerifier(text));
        assertTrue(wrong.getMessage().contains("whsec_") && (text.isEmpty() || !wrong.getMessage().contains(text)));
        assertThrows(IllegalArgumentException.class, WebhookVerifier::new);
    }

    @ParameterizedTest
    @ValueSource(strings = {"{}", "[]", " [1, -0.5e+3,\n{\"a\\u00e9\\n\":[true,false,null,\"\"]}] ", "\"ü🛒\"", "0"})
    void whatIsJson(String text) {
        assertTrue(Json.is(text));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "{a:1}", "[1]]", "01", "1.", "+1", ".5", "nul", "NaN",
        "'a'", "\"", "\"\\", "\"\\x\"", "\"\\u12g4\"", "\"\\u12", "\"\t\"", "1 2", "\u00a01"})
    void whatIsNotJson(String text) {
        assertFalse(Json.is(text));
    }

    @Test
    void deepJsonEnds() {
        assertTrue(Json.is("[".repeat(400) + "]".repeat(400)));
        assertFalse(Json.is("[".repeat(1 << 20)));
    }
}
