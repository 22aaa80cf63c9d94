package e2e

import (
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/cityconnect/cityconnect/scripts/internal/client"
)

// token returns a signed token with the usual claims, some of them replaced.
func token(replace jwt.MapClaims) string {
	claims := jwt.MapClaims{
		"iss": issuer, "aud": audience, "sub": "somebody", "name": "Somebody", "role": "resident",
		"exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range replace {
		claims[name] = value
	}
	return must(jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret)))
}

// userOf returns a client of the user called id, without asking the issuer.
func (c *city) userOf(id, role string) *client.Client {
	return c.As(id, token(jwt.MapClaims{"sub": id, "role": role}))
}
