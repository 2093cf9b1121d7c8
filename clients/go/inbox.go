// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"errors"
	"fmt"
)

// Received is the message that a handler works on. What it publishes follows from it.
type Received struct {
	ID            string
	CorrelationID string
	Traceparent   string
}

type handling struct{}

// Handling returns a context in which published events follow from received: causation_id becomes its id, correlation_id
// its correlation_id or, if it has none, its id, and traceparent its traceparent, unless an event has its own.
func Handling(ctx context.Context, received Received) context.Context {
	return context.WithValue(ctx, handling{}, received)
}

// Once calls handle for the first delivery of a message to a consumer, and not for a repeat: ran says which. That the
// message was received is recorded in tx, so roll tx back when handle fails, and it is handled when it comes again.
// Another transaction with the same message waits until tx ends. The table is made by outbox init --inbox.
func (c *Client[T]) Once(ctx context.Context, tx T, consumer, id string, handle func(context.Context) error) (ran bool, err error) {
	if consumer == "" || id == "" {
		return false, errors.New("outbox: once: consumer and id must not be empty; give the names of both")
	}
	conn, err := c.open(ctx, tx)
	if err == nil {
		ran, err = c.accept(ctx, conn, consumer, id)
	}
	if err != nil {
		return false, fmt.Errorf("outbox: once: %w", err)
	}
	if !ran {
		return false, nil
	}
	if received, ok := ctx.Value(handling{}).(Received); !ok || received.ID != id {
		ctx = Handling(ctx, Received{ID: id})
	}
	return true, handle(ctx)
}

func (c *Client[T]) accept(ctx context.Context, conn Conn, consumer, id string) (first bool, err error) {
	if c.store == SQLite {
		n, err := conn.Exec(ctx, "INSERT INTO outbox_inbox (consumer, id) VALUES (?, ?) ON CONFLICT DO NOTHING",
			consumer, id)
		return n == 1, err
	}
	err = conn.Query(ctx, func(scan func(...any) error) error { return scan(&first) },
		"SELECT "+c.prefix+"outbox_inbox_accept($1, $2)", consumer, id)
	return first, err
}
