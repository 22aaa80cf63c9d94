// Package pseudonym has the hashes under which the database keeps people whom nobody may
// find there: guests, and who complained about a report. With a plain hash anybody who can
// read a table could find a person by trying all.
package pseudonym

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
)

// Of returns the hashes of parts, one by each secret (HMAC-SHA256, RFC 2104).
func Of(secrets [][]byte, parts ...[]byte) [][]byte {
	hashes := make([][]byte, len(secrets))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		for _, part := range parts {
			mac.Write(part)
		}
		hashes[i] = mac.Sum(nil)
	}
	return hashes
}

// OfGuest returns by which hashes text, a guest's id or a code, is known, the one in use
// first.
func OfGuest(keys *event.Keyring, text string) [][]byte {
	return Of(keys.Derive("cityconnect/report-service/guests"), []byte(text))
}

// Complaints returns the secrets of OfComplainant, the one in use first.
func Complaints(keys *event.Keyring) [][]byte { return keys.Derive("cityconnect/report-service/abuse") }

// OfComplainant returns by which hashes a user's complaint about a report is known.
func OfComplainant(secrets [][]byte, reportID uuid.UUID, userID string) [][]byte {
	return Of(secrets, reportID[:], []byte(userID))
}
