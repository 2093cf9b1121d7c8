// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// The columns of outbox_message in the order in which row() gives their values.
var columns = [...]string{"id", "type", "key", "kind", "published", "priority", "event_time", "due_at", "expires_at",
	"content_type", "source", "subject", "topic", "correlation_id", "causation_id", "traceparent", "headers", "payload",
	"payload_bin"}

// SQLite takes this many parameters in one statement, PostgreSQL twice as many.
const parametersMax = 32766

// complete fills in what an event does not say itself: an id, the trace, and what it follows from.
func (c *Client[T]) complete(ctx context.Context, event *Event) {
	received, _ := ctx.Value(handling{}).(Received)
	traced := event.Traceparent != "" || hasHeader(event.Headers, "traceparent")
	if c.options.Trace != nil && !traced {
		if trace := c.options.Trace(ctx); isTraceparent(trace) {
			event.Traceparent, traced = trace, true
		}
	}
	if !traced {
		event.Traceparent = received.Traceparent
	}
	event.CausationID = or(event.CausationID, received.ID)
	event.CorrelationID = or(event.CorrelationID, or(received.CorrelationID, received.ID))
	event.ID = or(event.ID, newID(time.Now()))
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// row checks an event and returns the values of its columns: nil where the outbox has a default.
func (c *Client[T]) row(event *Event) ([]any, error) {
	if err := check(event); err != nil {
		return nil, err
	}
	payload, bin, err := event.Payload.columns(event.ContentType)
	if err != nil {
		return nil, err
	}
	row := []any{event.ID, event.Type, given(event.Key), nil, given(event.Published), given(event.Priority),
		c.time(event.EventTime), c.time(event.DueAt), c.time(event.ExpiresAt), given(event.ContentType),
		given(event.Source), given(event.Subject), given(event.Topic), given(event.CorrelationID),
		given(event.CausationID), given(event.Traceparent), nil, payload, bin}
	if event.Kind != "event" {
		row[3] = given(event.Kind)
	}
	if len(event.Headers) > 0 {
		row[16], err = marshal(event.Headers)
	}
	return row, err
}

func given[V comparable](value V) any {
	var unset V
	if value == unset {
		return nil
	}
	return value
}

func (c *Client[T]) time(value time.Time) any {
	switch {
	case value.IsZero():
		return nil
	case c.store == SQLite:
		return value.UnixMicro()
	}
	return value
}

// insert makes the statement for as many rows as fit into one, with the columns that any of them has a value for.
func (c *Client[T]) insert(rows [][]any) (query string, args []any, n int) {
	var used []int
	var names []string
	for i, name := range columns {
		for _, row := range rows {
			if row[i] != nil {
				used, names = append(used, i), append(names, name)
				break
			}
		}
	}
	if n = parametersMax / len(used); n > len(rows) {
		n = len(rows)
	}
	var values strings.Builder
	args = make([]any, 0, n*len(used))
	for _, row := range rows[:n] {
		separator := ", ("
		for _, i := range used {
			args = append(args, row[i])
			values.WriteString(separator + c.parameter(len(args)))
			separator = ", "
		}
		values.WriteString(")")
	}
	return "INSERT INTO " + c.prefix + "outbox_message (" + strings.Join(names, ", ") + ") VALUES " + values.String()[2:], args, n
}

func (c *Client[T]) parameter(n int) string {
	if c.store == SQLite {
		return "?"
	}
	return fmt.Sprint("$", n)
}

// newID makes a UUIDv7 as the library does: milliseconds, then the fraction of one, then randomness.
func newID(now time.Time) string {
	var id [16]byte
	micro := uint64(now.UnixMicro())
	binary.BigEndian.PutUint64(id[:8], micro/1000<<16|7<<12|micro%1000*4096/1000)
	if _, err := rand.Read(id[8:]); err != nil {
		panic(err) // the system has no randomness
	}
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
