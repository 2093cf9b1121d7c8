// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

type jsonValue struct{ value any }

func (j jsonValue) columns(string) (payload, bin any, err error) {
	text, err := marshal(j.value)
	if err != nil {
		return nil, nil, refuse("payload", "%v; repair it, or use Text or Bytes", err)
	}
	return text, nil, checkSize(len(text))
}

func (t Text) columns(contentType string) (payload, bin any, err error) {
	switch {
	case !utf8.ValidString(string(t)) || strings.IndexByte(string(t), 0) >= 0:
		return nil, nil, refuse("payload", "is not UTF-8 or has a NUL; use Bytes")
	case t != "" && isJSON(contentType) && !json.Valid([]byte(t)):
		return nil, nil, refuse("payload", "is not JSON; repair it or set another ContentType")
	}
	return string(t), nil, checkSize(len(t))
}

func (b Bytes) columns(string) (payload, bin any, err error) {
	return nil, append([]byte{}, b...), checkSize(len(b))
}

// marshal leaves <, > and & as they are: this is no HTML.
func marshal(value any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

// isJSON says whether text of this type must be JSON; without a type it must.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	media = strings.TrimSpace(media)
	return media == "" || strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}
