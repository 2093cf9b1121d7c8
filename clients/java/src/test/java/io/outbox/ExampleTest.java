// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.security.SignatureException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What README.md shows. */
class ExampleTest {
    private Outbox outbox = new Outbox(); // with a schema of its own: new Outbox().schema("outbox")

    /** Writes an order and publishes that it was placed: both, or neither. */
    void place(Connection connection, int order, String json) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO orders (id) VALUES (?)")) {
            insert.setInt(1, order);
            insert.executeUpdate();
        }
        outbox.publish(connection, Event.of("order.placed").key("" + order).payload(json));
    }

    /** A consumer: what it writes and what it publishes happens once for each message. */
    void bill(Connection connection, Received message) throws SQLException {
        outbox.once(connection, "billing", message, () ->
            outbox.publish(connection, Event.of("bill.written").payload("{}")));
        connection.commit(); // and acknowledge the message
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void shop(Place at) throws Exception {
        outbox = at.outbox;
        at.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)");
        try (Connection connection = at.begin()) {
            place(connection, 42, "{\"id\":42}");
            List<Event> events = outbox.published(connection, "order.placed", "42");
            assertEquals("{\"id\":42}", events.get(0).get("payload"));
            connection.rollback();
            long before = at.count();
            for (int delivery = 0; delivery < 3; delivery++)
                bill(connection, new Received("message-1", "cart-7", null));
            connection.rollback();
            assertEquals(before + 1, at.count());
        }
        at.execute("DROP TABLE orders");
    }

    @Test
    void webhook() {
        Map<String, String> request = Map.of("webhook-id", "1", "webhook-timestamp", "1763229600", "webhook-signature", "v1,AAAA");
        byte[] body = "{}".getBytes(StandardCharsets.UTF_8);
        WebhookVerifier verifier = new WebhookVerifier("whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=");
        assertThrows(SignatureException.class, () ->
            verifier.verify(request::get, body));
    }
}
