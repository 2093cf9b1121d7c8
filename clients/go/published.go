// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Published returns what the open transaction tx will publish when it commits, and nothing else: for tests. An empty
// eventType or key stands for any.
func (c *Client[T]) Published(ctx context.Context, tx T, eventType, key string) (events []Event, err error) {
	conn := c.conn(tx)
	mine := "xid = pg_current_xact_id()"
	if c.store == SQLite {
		before, err := committed(ctx, conn)
		if err != nil {
			return nil, fmt.Errorf("outbox: published: %w", err)
		}
		mine = fmt.Sprintf("seq > %d", before)
	}
	err = conn.Query(ctx, func(scan func(...any) error) error {
		event, err := scanEvent(scan)
		if (eventType == "" || event.Type == eventType) && (key == "" || event.Key == key) {
			events = append(events, event)
		}
		return err
	}, `SELECT id, type, coalesce(key, ''), coalesce(kind, ''), coalesce(published, false), coalesce(priority, 0),
		event_time, due_at, expires_at, coalesce(content_type, ''), coalesce(source, ''), coalesce(subject, ''),
		coalesce(topic, ''), coalesce(correlation_id, ''), coalesce(causation_id, ''), coalesce(traceparent, ''),
		coalesce(headers, '{}'), payload, payload_bin
		FROM `+c.prefix+"outbox_message WHERE "+mine+" ORDER BY seq")
	if err != nil {
		return nil, fmt.Errorf("outbox: published: %w", err)
	}
	return events, nil
}

func scanEvent(scan func(...any) error) (event Event, err error) {
	var headers string
	var payload sql.NullString
	var bin []byte
	err = scan(&event.ID, &event.Type, &event.Key, &event.Kind, &event.Published, &event.Priority,
		(*stamp)(&event.EventTime), (*stamp)(&event.DueAt), (*stamp)(&event.ExpiresAt), &event.ContentType, &event.Source,
		&event.Subject, &event.Topic, &event.CorrelationID, &event.CausationID, &event.Traceparent, &headers, &payload,
		&bin)
	if err != nil {
		return event, err
	}
	if headers != "{}" {
		err = json.Unmarshal([]byte(headers), &event.Headers)
	}
	switch {
	case payload.Valid:
		event.Payload = Text(payload.String)
	default:
		event.Payload = Bytes(bin)
	}
	return event, err
}

// stamp reads a time from either database.
type stamp time.Time

func (s *stamp) Scan(value any) error {
	switch value := value.(type) {
	case int64:
		*s = stamp(time.UnixMicro(value))
	case time.Time:
		*s = stamp(value)
	}
	return nil
}

// committed returns the end of the log as a connection of its own sees it, to which an open transaction does not exist.
// SQLite has one writer at a time: what lies behind is the transaction's.
func committed(ctx context.Context, conn Conn) (seq int64, err error) {
	var file string
	err = conn.Query(ctx, func(scan func(...any) error) error {
		return scan(&file)
	}, "SELECT coalesce(file, '') FROM pragma_database_list WHERE name = 'main'")
	if err != nil {
		return 0, err
	}
	if file == "" {
		return 0, errors.New("a database in memory has one connection only, which cannot tell; use a file")
	}
	for _, driver := range sql.Drivers() {
		if driver == "sqlite3" || driver == "sqlite" {
			db, err := sql.Open(driver, "file:"+(&url.URL{Path: file}).EscapedPath()+"?mode=ro")
			if err != nil {
				return 0, err
			}
			defer db.Close()
			err = db.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM outbox_message").Scan(&seq)
			return seq, err
		}
	}
	return 0, errors.New("no driver of database/sql has the name sqlite3 or sqlite; register yours under one of them")
}
