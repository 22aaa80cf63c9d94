package report

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// referenceAlphabet is Crockford's base 32: without I, L, O and U, which are
// heard or read as others.
const referenceAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const (
	referenceLetters = 8 // of five bits each
	// ReferenceHex is how many digits at the end of an id its reference has.
	ReferenceHex = 10
)

// Reference returns what people call the report with this id on the telephone,
// such as 7KQ2-M9XB: the last 40 bits of the id. They are random, so that it
// tells neither when the report was filed nor how many were before it.
// src/ui/reference.ts of the page has the same.
func Reference(id uuid.UUID) string {
	bits := binary.BigEndian.Uint64(id[8:])
	var text [referenceLetters]byte
	for i := range text {
		text[i] = referenceAlphabet[bits>>(5*(referenceLetters-1-i))&31]
	}
	return string(text[:4]) + "-" + string(text[4:])
}

// ReferenceOf returns the last ten hexadecimal digits of the ids that have the
// reference which words are together, however it was split and written.
func ReferenceOf(words []string) (suffix string, ok bool) {
	text := strings.NewReplacer("I", "1", "L", "1", "O", "0").Replace(strings.ToUpper(strings.Join(words, "")))
	if len(text) != referenceLetters {
		return "", false
	}
	var bits uint64
	for _, letter := range text {
		value := strings.IndexRune(referenceAlphabet, letter)
		if value < 0 {
			return "", false
		}
		bits = bits<<5 | uint64(value)
	}
	return fmt.Sprintf("%0*x", ReferenceHex, bits), true
}
