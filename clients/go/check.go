// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The limits of the library; the database refuses fewer things, and what it does not would fail at its delivery.
const (
	typeMax        = 500
	keyMax         = 255
	textMax        = 2048
	headersMax     = 64
	headerBytesMax = 32768
	payloadMax     = 16 << 20
)

// FieldError says which field of an event is wrong, why, and what to do.
type FieldError struct {
	Field  string // as the column of outbox_message: content_type
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

func refuse(field, reason string, args ...any) error {
	return &FieldError{field, fmt.Sprintf(reason, args...)}
}

var (
	traceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)
	mediaType   = regexp.MustCompile(`^[!-:<-~]+/[!-:<-~][ -~]*$`)
	headerName  = regexp.MustCompile("^[0-9A-Za-z!#$%&'*+.^_`|~-]+$")
	reserved    = regexp.MustCompile("(?i)^(outbox-|ce-|ce_|content-type$)")
)

func check(event *Event) error {
	if event.Type == "" {
		return refuse("type", "is missing; name what happened, such as order.placed")
	}
	for _, field := range []struct {
		name, value string
		max         int
	}{
		{"type", event.Type, typeMax}, {"key", event.Key, keyMax}, {"id", event.ID, keyMax},
		{"content_type", event.ContentType, textMax}, {"source", event.Source, textMax},
		{"subject", event.Subject, textMax}, {"topic", event.Topic, textMax},
		{"correlation_id", event.CorrelationID, textMax}, {"causation_id", event.CausationID, textMax},
		{"traceparent", event.Traceparent, textMax},
	} {
		if err := checkText(field.name, field.value, field.max); err != nil {
			return err
		}
	}
	switch {
	case event.Kind != "" && event.Kind != "event" && event.Kind != "command":
		return refuse("kind", "%q is unknown; use event or command", event.Kind)
	case event.Priority < -100 || event.Priority > 100:
		return refuse("priority", "%d is out of range; use -100 to 100, 0 is normal", event.Priority)
	case event.ContentType != "" && !mediaType.MatchString(event.ContentType):
		return refuse("content_type", "%q is not a media type; write one such as application/json", event.ContentType)
	case event.Traceparent != "" && !isTraceparent(event.Traceparent):
		return refuse("traceparent", "%q is not a W3C trace context; write 00-<32 hex digits>-<16 hex digits>-<2 hex digits>",
			event.Traceparent)
	case event.Payload == nil:
		return refuse("payload", "is missing; give JSON(v), Text or Bytes")
	}
	if err := checkTimes(event); err != nil {
		return err
	}
	return checkHeaders(event)
}

func checkText(name, value string, max int) error {
	switch {
	case !utf8.ValidString(value):
		return refuse(name, "%.60q is not UTF-8; convert it", value)
	case utf8.RuneCountInString(value) > max:
		return refuse(name, "%.60q has %d characters, at most %d; shorten it", value, utf8.RuneCountInString(value), max)
	case strings.IndexFunc(value, unicode.IsControl) >= 0:
		return refuse(name, "%.60q has a control character; remove it", value)
	}
	return nil
}

func isTraceparent(value string) bool {
	part := traceparent.FindStringSubmatch(value)
	return part != nil && part[1] != "ff" && strings.Trim(part[2], "0") != "" && strings.Trim(part[3], "0") != "" &&
		(part[1] != "00" || part[4] == "")
}

func checkTimes(event *Event) error {
	for _, field := range []struct {
		name  string
		value time.Time
	}{{"event_time", event.EventTime}, {"due_at", event.DueAt}, {"expires_at", event.ExpiresAt}} {
		if year := field.value.UTC().Year(); !field.value.IsZero() && (year < 1970 || year > 9999) {
			return refuse(field.name, "%v is not between 1970 and the year 9999", field.value)
		}
	}
	if !event.ExpiresAt.IsZero() && !event.ExpiresAt.After(event.DueAt) {
		return refuse("expires_at", "%v is not after due_at, %v; it could never be delivered", event.ExpiresAt, event.DueAt)
	}
	return nil
}

func checkHeaders(event *Event) error {
	bytes := 0
	names := make(map[string]bool)
	for name, value := range event.Headers {
		folded := strings.ToLower(name)
		switch {
		case !headerName.MatchString(name):
			return refuse("headers", "name %.60q has a character that headers cannot have; use letters, digits and - . _", name)
		case reserved.MatchString(name):
			return refuse("headers", "name %.60q is reserved (outbox-*, ce-*, ce_*, content-type); choose another or use the field", name)
		case !utf8.ValidString(value) || strings.ContainsAny(value, "\r\n\x00"):
			return refuse("headers", "the value %.60q of %.60q has a line break or a NUL, or is not UTF-8; remove it", value, name)
		case names[folded]:
			return refuse("headers", "%.60q is given twice; keep one of them", name)
		case folded == "traceparent" && event.Traceparent != "":
			return refuse("headers", "%.60q is also set as a field; keep one of them", name)
		}
		names[folded] = true
		bytes += len(name) + len(value)
	}
	if len(event.Headers) > headersMax || bytes > headerBytesMax {
		return refuse("headers", "%d of them with %d bytes, at most %d with %d; remove some", len(event.Headers), bytes,
			headersMax, headerBytesMax)
	}
	return nil
}

func hasHeader(headers map[string]string, name string) bool {
	for candidate := range headers {
		if strings.EqualFold(candidate, name) {
			return true
		}
	}
	return false
}

func checkSize(bytes int) error {
	if bytes > payloadMax {
		return refuse("payload", "has %d bytes, at most %d; store it elsewhere and send a reference", bytes, payloadMax)
	}
	return nil
}
