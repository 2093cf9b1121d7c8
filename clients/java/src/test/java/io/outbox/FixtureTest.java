// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SignatureException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Clock;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The cases that all clients' tests run: clients/testdata/README.md says what they mean. */
class FixtureTest {
    private static final JsonNode CASES;

    static {
        try {
            CASES = expand(Place.JSON.readTree(Path.of("../testdata/cases.json").toFile()));
        } catch (IOException failed) {
            throw new ExceptionInInitializerError(failed);
        }
    }

    /** Makes text of {"repeat": text, "times": n}. */
    private static JsonNode expand(JsonNode tree) {
        if (tree.has("repeat") && tree.has("times"))
            return Place.JSON.getNodeFactory().textNode(tree.get("repeat").asText().repeat(tree.get("times").asInt()));
        if (tree instanceof ObjectNode object)
            object.properties().forEach(member -> member.setValue(expand(member.getValue())));
        else if (tree.isArray())
            for (int i = 0; i < tree.size(); i++)
                ((com.fasterxml.jackson.databind.node.ArrayNode) tree).set(i, expand(tree.get(i)));
        return tree;
    }

    private static Iterable<JsonNode> cases(String part) {
        return CASES.get(part);
    }

    private static Event eventOf(JsonNode message) throws IOException {
        Event event = Event.of(null);
        for (Map.Entry<String, JsonNode> member : message.properties()) {
            String name = member.getKey();
            JsonNode value = member.getValue();
            switch (name) {
            case "published" -> event.published(value.asBoolean());
            case "priority" -> event.priority(value.asInt());
            case "event_time", "due_at", "expires_at" -> event.set(name, OffsetDateTime.parse(value.asText()).toInstant());
            case "headers" -> event.headers(Place.JSON.convertValue(value, Place.JSON.getTypeFactory()
                    .constructMapType(HashMap.class, String.class, String.class)));
            case "data" -> event.payload(Place.JSON.writeValueAsString(value));
            case "payload" -> event.payload(value.asText());
            case "payload_base64" -> event.payload(value.binaryValue());
            default -> event.set(name, value.asText());
            }
        }
        return event;
    }

    private static Received received(JsonNode handling) {
        return new Received(handling.get("id").asText(), handling.path("correlationid").asText(null),
                handling.path("traceparent").asText(null));
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void publish(Place place) throws Exception {
        Map<JsonNode, String> ids = new HashMap<>();
        for (JsonNode one : cases("publish")) {
            Outbox.Handling handling = one.has("handling") ? Outbox.handling(received(one.get("handling"))) : () -> { };
            try (handling; Connection connection = place.begin()) {
                ids.put(one, place.outbox.publish(connection, eventOf(one.get("message"))));
                connection.commit();
            }
        }
        Map<String, JsonNode> events = place.events();
        for (JsonNode one : cases("publish")) {
            String name = one.get("name").asText(), id = ids.get(one);
            ObjectNode row = row(place, id, one.get("message")), event = (ObjectNode) events.get(id);
            assertEquals(asJson((ObjectNode) one.get("row")), asJson(row), name);
            for (String left : List.of("sequence", "id", "time", "source"))
                if (!one.get("event").has(left))
                    event.remove(left);
            assertEquals(one.get("event"), event, name);
        }
    }

    /** The columns of a message that are not NULL, in the fixture's form. */
    private static ObjectNode row(Place place, String id, JsonNode message) throws SQLException {
        ObjectNode row = Place.JSON.createObjectNode();
        try (Connection connection = DriverManager.getConnection(place.jdbc); PreparedStatement statement =
                connection.prepareStatement("SELECT * FROM " + place.table + " WHERE id = ?")) {
            statement.setString(1, id);
            ResultSet found = statement.executeQuery();
            found.next();
            for (int i = 1; i <= found.getMetaData().getColumnCount(); i++) {
                String name = found.getMetaData().getColumnName(i);
                if (found.getObject(i) == null || List.of("seq", "created_at", "xid", "slot").contains(name)
                        || (List.of("id", "event_time").contains(name) && !message.has(name)))
                    continue;
                if (name.equals("payload_bin"))
                    row.put("payload_base64", found.getBytes(i));
                else if (name.endsWith("_at") || name.equals("event_time"))
                    row.put(name, place.isSqlite() ? found.getLong(i)
                            : ChronoUnit.MICROS.between(Instant.EPOCH, found.getObject(i, OffsetDateTime.class).toInstant()));
                else if (name.equals("published") || name.equals("priority"))
                    row.put(name, name.equals("published") ? 1 : found.getInt(i));
                else
                    row.put(name, found.getString(i));
            }
        }
        return row;
    }

    /** What is compared as JSON, and numbers, in one form. */
    private static Object asJson(ObjectNode row) throws IOException {
        for (String name : List.of("headers", "payload", "payload_base64")) {
            if (row.path(name).isTextual() && name.startsWith("payload_"))
                row.put(name, row.get(name).binaryValue());
            else if (row.path(name).isTextual() && Json.is(row.get(name).asText()))
                row.set(name, Place.JSON.readTree(row.get(name).asText()));
        }
        return Place.JSON.readTree(Place.JSON.writeValueAsString(row));
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void refused(Place place) throws Exception {
        long before = place.count();
        try (Connection connection = place.begin()) {
            for (JsonNode one : cases("refused")) {
                Event event = eventOf(one.get("message"));
                InvalidEventException wrong = assertThrows(InvalidEventException.class,
                        () -> place.outbox.publish(connection, event), one.get("name").asText());
                assertEquals(one.get("field").asText(), wrong.field(), one.get("name") + ": " + wrong.getMessage());
            }
            connection.commit();
        }
        assertEquals(before, place.count());
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void inbox(Place place) throws Exception {
        for (JsonNode one : cases("inbox")) {
            try (Connection connection = place.begin()) {
                assertEquals(one.get("first").asBoolean(),
                        place.outbox.accept(connection, one.get("consumer").asText(), one.get("id").asText()), one.toString());
                connection.commit();
            }
        }
    }

    @TestFactory
    Stream<DynamicTest> webhooks() {
        return StreamSupport.stream(cases("webhooks").spliterator(), false)
                .map(one -> DynamicTest.dynamicTest(one.get("name").asText(), () -> webhook(one)));
    }

    private static void webhook(JsonNode one) throws SignatureException {
        Iterator<JsonNode> keys = one.get("keys").iterator();
        String[] texts = Stream.generate(() -> keys.next().asText()).limit(one.get("keys").size()).toArray(String[]::new);
        Clock clock = Clock.fixed(Instant.ofEpochSecond(one.get("now").asLong()), ZoneOffset.UTC);
        WebhookVerifier verifier = new WebhookVerifier(WebhookVerifier.TOLERANCE, clock, texts);
        byte[] body = one.get("body").asText().getBytes(StandardCharsets.UTF_8);
        JsonNode headers = one.get("headers");
        if (one.get("valid").asBoolean())
            verifier.verify(name -> headers.path(name).asText(null), body);
        else
            assertThrows(SignatureException.class, () -> verifier.verify(name -> headers.path(name).asText(null), body));
    }
}
