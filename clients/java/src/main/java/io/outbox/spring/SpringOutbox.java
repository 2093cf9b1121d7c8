// SPDX-License-Identifier: Apache-2.0
package io.outbox.spring;

import io.outbox.Event;
import io.outbox.NoTransactionException;
import io.outbox.Outbox;
import io.outbox.Received;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
import org.springframework.jdbc.UncategorizedSQLException;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * An {@link Outbox} in Spring's transactions: inside of {@code @Transactional} methods and TransactionTemplates of the
 * DataSource. Outside of one, everything is refused.
 */
public final class SpringOutbox {
    private final Outbox outbox;
    private final DataSource source;

    public SpringOutbox(Outbox outbox, DataSource source) {
        this.outbox = outbox;
        this.source = source;
    }

    private interface Act<R, E extends Exception> {
        R on(Connection connection) throws SQLException, E;
    }

    private <R, E extends Exception> R inTransaction(Act<R, E> act) throws E {
        String remedy = "call this in a @Transactional method, whose transaction is one of this DataSource";
        if (!TransactionSynchronizationManager.isActualTransactionActive())
            throw new NoTransactionException(remedy);
        Connection connection = DataSourceUtils.getConnection(source);
        try {
            if (connection.getAutoCommit()) // the transaction is another DataSource's
                throw new NoTransactionException(remedy);
            return act.on(connection);
        } catch (SQLException failed) {
            throw new UncategorizedSQLException("outbox", null, failed);
        } finally {
            DataSourceUtils.releaseConnection(connection, source);
        }
    }

    /** Publishes events now, and returns their ids. */
    public List<String> publish(Event... events) {
        return this.<List<String>, RuntimeException>inTransaction(connection -> outbox.publish(connection, List.of(events)));
    }

    /** Publishes an event with all others that were collected, in one statement just before the commit. */
    public void collect(Event event) {
        inTransaction(connection -> true);
        for (TransactionSynchronization one : TransactionSynchronizationManager.getSynchronizations()) {
            if (one instanceof Collected collected && collected.owner() == this) {
                collected.events.add(event);
                return;
            }
        }
        Collected collected = new Collected();
        collected.events.add(event);
        TransactionSynchronizationManager.registerSynchronization(collected);
    }

    private final class Collected implements TransactionSynchronization {
        private final List<Event> events = new ArrayList<>();
        private final Map<Object, Integer> savepoints = new HashMap<>(); // how many there were

        private SpringOutbox owner() {
            return SpringOutbox.this;
        }

        @Override
        public void beforeCommit(boolean readOnly) {
            publish(events.toArray(Event[]::new));
            events.clear();
        }

        // These two are called by Spring 6.2 and later.
        @Override
        public void savepoint(Object savepoint) {
            savepoints.put(savepoint, events.size());
        }

        @Override
        public void savepointRollback(Object savepoint) {
            events.subList(savepoints.getOrDefault(savepoint, 0), events.size()).clear();
        }
    }

    /** {@link Outbox#once} in the transaction that is going on. */
    public <E extends Exception> boolean once(String consumer, Received received, Outbox.Work<E> work) throws E {
        return this.<Boolean, E>inTransaction(connection -> outbox.once(connection, consumer, received, work));
    }

    /** {@link Outbox#published} of the transaction that is going on. */
    public List<Event> published(String type, String key) {
        return this.<List<Event>, RuntimeException>inTransaction(connection -> outbox.published(connection, type, key));
    }
}
