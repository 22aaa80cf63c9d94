package report

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// base32 is Crockford's, for what is read out. It omits I, L, O and U because they are easily
// misheard or misread.
const base32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// base32Spelling returns text as base32 writes it, however it was heard or read.
func base32Spelling(text string) string {
	return strings.NewReplacer("I", "1", "L", "1", "O", "0").Replace(strings.ToUpper(text))
}

// referenceLetters have five bits each.
const referenceLetters = 8

// Reference returns the reference of a report, which identifies it on the telephone, such as
// 7KQ2-M9XB: the last 40 bits of its id in base32. The bits are random, so that it
// reveals neither when a report was filed nor how many there are.
// src/ui/reference.ts of the page writes it.
func Reference(id uuid.UUID) string {
	var bits uint64
	for _, b := range id[len(id)-referenceLetters*5/8:] {
		bits = bits<<8 | uint64(b)
	}
	letters := make([]byte, 0, referenceLetters)
	for i := referenceLetters - 1; i >= 0; i-- {
		letters = append(letters, base32[bits>>(5*i)&31])
	}
	return fmt.Sprintf("%s-%s", letters[:referenceLetters/2], letters[referenceLetters/2:])
}

// ReferenceOf returns the last ten hexadecimal digits of the ids with the
// reference that words form together, however it was split and spelled.
func ReferenceOf(words []string) (suffix string, ok bool) {
	text := base32Spelling(strings.Join(words, ""))
	if len(text) != referenceLetters {
		return "", false
	}
	var bits uint64
	for _, letter := range text {
		value := strings.IndexRune(base32, letter)
		if value < 0 {
			return "", false
		}
		bits = bits<<5 | uint64(value)
	}
	return fmt.Sprintf("%010x", bits), true
}
