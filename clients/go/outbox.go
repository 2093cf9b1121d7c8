// SPDX-License-Identifier: Apache-2.0

// Package outbox publishes messages in the caller's own transaction, by plain SQL, and handles received ones once.
// A message exists if and only if its transaction commits; the relay (outbox relay) delivers it.
package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Store is the database that the outbox is in.
type Store int

const (
	Postgres Store = iota + 1
	SQLite
)

// Event is what is published. Type and Payload are required; what is left out gets the outbox's default.
type Event struct {
	Type    string  // what happened: order.placed
	Key     string  // messages of one key are delivered in order
	Payload Payload // JSON(v), Text or Bytes

	ID            string // your own makes a repeat harmless; else a new UUIDv7
	Kind          string // event (the default) or command
	Published     bool   // external targets get it, too
	Priority      int    // -100 to 100
	EventTime     time.Time
	DueAt         time.Time // not delivered before
	ExpiresAt     time.Time // not delivered after
	ContentType   string
	Source        string
	Subject       string
	Topic         string
	CorrelationID string
	CausationID   string
	Traceparent   string
	Headers       map[string]string
}

// Payload is what an event carries: JSON(v), Text or Bytes.
type Payload interface {
	// columns returns the values of payload and payload_bin.
	columns(contentType string) (payload, bin any, err error)
}

// Text is stored as it is. It must be JSON unless ContentType says otherwise.
type Text string

// Bytes are application/octet-stream unless ContentType says otherwise.
type Bytes []byte

// JSON is a payload that json.Marshal makes of value.
func JSON(value any) Payload { return jsonValue{value} }

// Options of a Client; the zero value is fine.
type Options struct {
	// Schema of the outbox's tables: that of ?schema= in the store's URL. Default: the connection's search path.
	Schema string
	// Trace returns the traceparent (W3C) of what goes on in ctx, or "". Called for events without one.
	Trace func(ctx context.Context) string
}

// Tx is an open transaction of database/sql: *sql.Tx, or what wraps one. *sql.DB and *sql.Conn, on which every statement
// commits by itself, are none: publishing there does not compile.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	Commit() error
	Rollback() error
}

// Conn is what a Client needs of a transaction. Package pgxoutbox has one for pgx.
type Conn interface {
	// Exec returns the number of rows that were written.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	// Query calls each for every row.
	Query(ctx context.Context, each func(scan func(dest ...any) error) error, query string, args ...any) error
}

// Client publishes on transactions of type T. It has no state and may be used by many goroutines at once.
type Client[T any] struct {
	store   Store
	options Options
	prefix  string
	conn    func(T) Conn
}

// New makes a client for transactions of database/sql.
func New(store Store, options Options) *Client[Tx] {
	return NewClient(store, options, func(tx Tx) Conn { return stdConn{tx} })
}

// NewClient makes a client for transactions of another kind, which conn turns into a Conn.
func NewClient[T any](store Store, options Options, conn func(T) Conn) *Client[T] {
	client := &Client[T]{store: store, options: options, conn: conn}
	if options.Schema != "" {
		client.prefix = `"` + strings.ReplaceAll(options.Schema, `"`, `""`) + `".`
	}
	return client
}

// Publish writes events, in their order and in one statement, on the open transaction tx, and returns their ids. Nothing
// is published unless tx commits. An event whose own ID is in the log already is not written again.
func (c *Client[T]) Publish(ctx context.Context, tx T, events ...Event) ([]string, error) {
	ids := make([]string, len(events))
	rows := make([][]any, len(events))
	conflict := ""
	for i, event := range events {
		if event.ID != "" {
			conflict = " ON CONFLICT (id) DO NOTHING"
		}
		c.complete(ctx, &event)
		row, err := c.row(&event)
		if err != nil && len(events) > 1 {
			err = fmt.Errorf("event %d of %d: %w", i+1, len(events), err)
		}
		if err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		ids[i], rows[i] = event.ID, row
	}
	conn, err := c.open(ctx, tx)
	for err == nil && len(rows) > 0 {
		query, args, n := c.insert(rows)
		_, err = conn.Exec(ctx, query+conflict, args...)
		rows = rows[n:]
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: publish: %w", err)
	}
	return ids, nil
}

// ErrNoTransaction says that the transaction is over although its driver does not know it yet.
var ErrNoTransaction = errors.New("no transaction is open on this connection; begin one, and stop at its first error")

// open returns tx as a Conn. SQLite ends a transaction by itself when it has no room, is interrupted, or an ON CONFLICT
// ROLLBACK says so, and then every statement commits by itself: only a BEGIN that is refused proves that one is open.
func (c *Client[T]) open(ctx context.Context, tx T) (Conn, error) {
	conn := c.conn(tx)
	if c.store != SQLite {
		return conn, nil
	}
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		return conn, nil
	}
	_, _ = conn.Exec(ctx, "ROLLBACK")
	return nil, ErrNoTransaction
}

// stdConn is a Conn on a transaction of database/sql.
type stdConn struct{ tx Tx }

func (c stdConn) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := c.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c stdConn) Query(ctx context.Context, each func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := c.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
