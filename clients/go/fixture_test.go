// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"outbox.example/outbox"
)

// The cases that all clients' tests run: clients/testdata/README.md says what they mean.
type fixture struct {
	Publish []struct {
		Name           string
		Message, Event map[string]any
		Row            map[string]any
		Handling       map[string]string
	}
	Refused []struct {
		Name, Field string
		Message     map[string]any
	}
	Inbox []struct {
		Consumer, ID string
		First        bool
	}
}

func readFixture(t *testing.T) (cases fixture) {
	text, err := os.ReadFile("../testdata/cases.json")
	must(t, err)
	var tree any
	must(t, json.Unmarshal(text, &tree))
	text, err = json.Marshal(expand(tree))
	must(t, err)
	must(t, json.Unmarshal(text, &cases))
	return cases
}

// expand makes text of {"repeat": text, "times": n}.
func expand(tree any) any {
	switch tree := tree.(type) {
	case []any:
		for i := range tree {
			tree[i] = expand(tree[i])
		}
	case map[string]any:
		if text, ok := tree["repeat"].(string); ok {
			return strings.Repeat(text, int(tree["times"].(float64)))
		}
		for name := range tree {
			tree[name] = expand(tree[name])
		}
	}
	return tree
}

// eventOf makes an event of a case's message. Two payloads at once cannot be said here.
func eventOf(t *testing.T, message map[string]any) (event outbox.Event, ok bool) {
	texts := map[string]*string{"type": &event.Type, "key": &event.Key, "id": &event.ID, "kind": &event.Kind,
		"content_type": &event.ContentType, "source": &event.Source, "subject": &event.Subject, "topic": &event.Topic,
		"correlation_id": &event.CorrelationID, "causation_id": &event.CausationID, "traceparent": &event.Traceparent}
	payloads := 0
	for name, value := range message {
		switch name {
		case "published":
			event.Published = value.(bool)
		case "priority":
			event.Priority = int(value.(float64))
		case "event_time":
			event.EventTime = at(t, value.(string))
		case "due_at":
			event.DueAt = at(t, value.(string))
		case "expires_at":
			event.ExpiresAt = at(t, value.(string))
		case "headers":
			event.Headers = make(map[string]string)
			for name, value := range value.(map[string]any) {
				event.Headers[name] = value.(string)
			}
		case "data":
			event.Payload = outbox.JSON(value)
			payloads++
		case "payload":
			event.Payload = outbox.Text(value.(string))
			payloads++
		case "payload_base64":
			data, err := base64.StdEncoding.DecodeString(value.(string))
			must(t, err)
			event.Payload = outbox.Bytes(data)
			payloads++
		default:
			*texts[name] = value.(string)
		}
	}
	return event, payloads < 2
}

func TestFixturePublish(t *testing.T) {
	cases := readFixture(t)
	worlds(t, func(t *testing.T, w *world) {
		ids := make(map[string]string) // of cases
		for _, one := range cases.Publish {
			event, _ := eventOf(t, one.Message)
			handling := ctx
			if one.Handling != nil {
				handling = outbox.Handling(ctx, outbox.Received{ID: one.Handling["id"],
					CorrelationID: one.Handling["correlationid"], Traceparent: one.Handling["traceparent"]})
			}
			u := w.begin(t, outbox.Options{})
			made, err := u.publish(handling, event)
			if err != nil {
				t.Fatalf("%s: %v", one.Name, err)
			}
			must(t, u.commit())
			ids[one.Name] = made[0]
		}
		events := w.events(t)
		for _, one := range cases.Publish {
			id := ids[one.Name]
			if row := w.row(t, id, one.Message); !reflect.DeepEqual(row, asRow(t, one.Row)) {
				t.Errorf("%s: the row is\n%v\nand not\n%v", one.Name, row, asRow(t, one.Row))
			}
			event := events[id]
			for _, name := range []string{"sequence", "id", "time", "source"} {
				if one.Event[name] == nil {
					delete(event, name)
				}
			}
			if !reflect.DeepEqual(event, one.Event) {
				t.Errorf("%s: the event is\n%v\nand not\n%v", one.Name, event, one.Event)
			}
		}
	})
}

// row reads the columns of a message that are not NULL, in the fixture's form.
func (w *world) row(t *testing.T, id string, message map[string]any) map[string]any {
	rows, err := w.db.Query("SELECT * FROM "+w.table+" WHERE id = $1", id)
	must(t, err)
	defer rows.Close()
	names, _ := rows.Columns()
	values := make([]any, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	if !rows.Next() {
		t.Fatalf("%s: no row", id)
	}
	must(t, rows.Scan(into...))
	row := make(map[string]any)
	for i, name := range names {
		switch name {
		case "seq", "created_at", "xid", "slot":
			continue
		case "id", "event_time":
			if message[name] == nil {
				continue
			}
		case "payload_bin":
			if data, ok := values[i].([]byte); ok {
				row["payload_base64"] = base64.StdEncoding.EncodeToString(data)
			}
			continue
		}
		switch value := values[i].(type) {
		case nil:
		case bool:
			row[name] = 1.0
		case int64:
			row[name] = float64(value)
		case interface{ UnixMicro() int64 }:
			row[name] = float64(value.UnixMicro())
		case string:
			row[name] = value
		default:
			t.Fatalf("%s is a %T", name, value)
		}
	}
	return asRow(t, row)
}

// asRow makes JSON of what is compared as JSON.
func asRow(t *testing.T, row map[string]any) map[string]any {
	for _, name := range []string{"headers", "payload"} {
		if text, ok := row[name].(string); ok {
			var value any
			if json.Unmarshal([]byte(text), &value) == nil {
				row[name] = value
			}
		}
	}
	return row
}

func TestFixtureRefused(t *testing.T) {
	cases := readFixture(t)
	worlds(t, func(t *testing.T, w *world) {
		before := w.count(t)
		for _, one := range cases.Refused {
			event, sayable := eventOf(t, one.Message)
			if !sayable {
				continue // an Event has one Payload
			}
			u := w.begin(t, outbox.Options{})
			_, err := u.publish(ctx, event)
			if one.Field != "type" && one.Message[one.Field] == "" {
				must(t, err) // "" is how Go leaves a field out
				must(t, u.rollback())
				continue
			}
			var wrong *outbox.FieldError
			if !errors.As(err, &wrong) || wrong.Field != one.Field {
				t.Errorf("%s: the error is %v, and not one of %s", one.Name, err, one.Field)
			}
			must(t, u.commit())
		}
		if n := w.count(t) - before; n != 0 {
			t.Errorf("%d messages were written", n)
		}
	})
}

func TestFixtureInbox(t *testing.T) {
	cases := readFixture(t)
	worlds(t, func(t *testing.T, w *world) {
		for i, one := range cases.Inbox {
			u := w.begin(t, outbox.Options{})
			handled := false
			ran, err := u.once(ctx, one.Consumer, one.ID, func(context.Context) error { handled = true; return nil })
			must(t, err)
			must(t, u.commit())
			if ran != one.First || handled != ran {
				t.Errorf("%d: %s, %s: ran %v, handled %v", i, one.Consumer, one.ID, ran, handled)
			}
		}
	})
}
