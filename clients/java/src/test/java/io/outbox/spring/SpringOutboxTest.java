// SPDX-License-Identifier: Apache-2.0
package io.outbox.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.outbox.Event;
import io.outbox.InvalidEventException;
import io.outbox.NoTransactionException;
import io.outbox.Place;
import io.outbox.Received;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionTemplate;

class SpringOutboxTest {
    /** An application's service. */
    static class Shop {
        private final SpringOutbox outbox;

        Shop(SpringOutbox outbox) {
            this.outbox = outbox;
        }

        @Transactional
        List<Object> place(boolean fails) {
            outbox.publish(event("placed"));
            if (fails)
                throw new IllegalArgumentException("planned");
            return keys(outbox);
        }
    }

    @EnableTransactionManagement(proxyTargetClass = true)
    static class Configuration {
        static Place place;

        @Bean
        DataSource source() {
            return new DriverManagerDataSource(place.jdbc);
        }

        @Bean
        PlatformTransactionManager manager(DataSource source) {
            return new DataSourceTransactionManager(source);
        }

        @Bean
        SpringOutbox outbox(DataSource source) {
            return new SpringOutbox(place.outbox, source);
        }

        @Bean
        Shop shop(SpringOutbox outbox) {
            return new Shop(outbox);
        }
    }

    static Event event(String key) {
        return Event.of("spring").key(key).payload("{}");
    }

    static List<Object> keys(SpringOutbox outbox) {
        return new ArrayList<>(outbox.published("spring", null).stream().map(event -> event.get("key")).toList());
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void transactional(Place place) throws Exception {
        Configuration.place = place;
        try (var context = new AnnotationConfigApplicationContext(Configuration.class)) {
            Shop shop = context.getBean(Shop.class);
            long before = place.count();
            assertThrows(IllegalArgumentException.class, () -> shop.place(true));
            assertEquals(before, place.count());
            assertEquals(List.of("placed"), shop.place(false));
            assertEquals(before + 1, place.count());
        }
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void outsideOfATransactionItIsRefused(Place place) throws Exception {
        DataSource source = new DriverManagerDataSource(place.jdbc), another = new DriverManagerDataSource(place.jdbc);
        SpringOutbox outbox = new SpringOutbox(place.outbox, source);
        long before = place.count();
        Runnable[] acts = {() -> outbox.publish(event("1")), () -> outbox.collect(event("1")),
            () -> outbox.once("billing", Received.of("spring"), () -> { }), () -> outbox.published(null, null)};
        for (Runnable act : acts) {
            assertThrows(NoTransactionException.class, act::run);
            var template = new TransactionTemplate(new DataSourceTransactionManager(another));
            assertThrows(NoTransactionException.class, () -> template.executeWithoutResult(status -> act.run()));
            template.setPropagationBehavior(TransactionDefinition.PROPAGATION_SUPPORTS);
            assertThrows(NoTransactionException.class, () -> template.executeWithoutResult(status -> act.run()));
        }
        assertEquals(before, place.count());
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void collectedIsPublishedBeforeTheCommit(Place place) throws Exception {
        DataSource source = new DriverManagerDataSource(place.jdbc);
        SpringOutbox outbox = new SpringOutbox(place.outbox, source), twin = new SpringOutbox(place.outbox, source);
        var template = new TransactionTemplate(new DataSourceTransactionManager(source));
        var nested = new TransactionTemplate(template.getTransactionManager());
        nested.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
        long before = place.count();
        template.executeWithoutResult(status -> {
            outbox.collect(event("a"));
            outbox.collect(event("b"));
            twin.collect(event("twin"));
            for (boolean rolledBack : new boolean[] {true, false}) {
                nested.executeWithoutResult(inner -> {
                    outbox.collect(event("inner " + rolledBack));
                    if (rolledBack)
                        inner.setRollbackOnly();
                });
            }
            assertEquals(List.of(), keys(outbox));
        });
        assertEquals(before + 4, place.count());
        template.executeWithoutResult(status -> {
            outbox.collect(event("dropped"));
            status.setRollbackOnly();
        });
        template.executeWithoutResult(status -> {
            nested.executeWithoutResult(inner -> {
                outbox.collect(event("first of all, in a savepoint"));
                inner.setRollbackOnly();
            });
        });
        assertThrows(InvalidEventException.class, () -> template.executeWithoutResult(status -> outbox.collect(Event.of("spring"))));
        assertEquals(before + 4, place.count());
    }

    @ParameterizedTest
    @MethodSource("io.outbox.Place#all")
    void onceInItsTransaction(Place place) {
        DataSource source = new DriverManagerDataSource(place.jdbc);
        SpringOutbox outbox = new SpringOutbox(place.outbox, source);
        var template = new TransactionTemplate(new DataSourceTransactionManager(source));
        boolean[] ran = new boolean[4];
        for (int i : new int[] {0, 1, 2, 3}) {
            template.executeWithoutResult(status -> {
                ran[i] = outbox.once("billing", Received.of("spring once"), () -> outbox.publish(event("once")));
                if (ran[i])
                    assertEquals("spring once", outbox.published("spring", "once").get(0).get("causation_id"));
                if (i == 0)
                    status.setRollbackOnly();
            });
        }
        assertTrue(ran[0] && ran[1], Arrays.toString(ran));
        assertFalse(ran[2] || ran[3], Arrays.toString(ran));
    }
}
