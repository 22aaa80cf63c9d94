package config

import "errors"

// A Switch is a feature that a city has or has not.
type Switch bool

// UnmarshalText reads "on" or "off", or what YAML 1.1, and so Helm, makes of them.
func (s *Switch) UnmarshalText(text []byte) error {
	switch string(text) {
	case "on", "true":
		*s = true
	case "off", "false":
		*s = false
	default:
		return errors.New("must be on or off")
	}
	return nil
}
