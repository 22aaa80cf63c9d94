package config

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// A Size is a number of bytes, which is written as GOMEMLIMIT is, such as 512MiB.
type Size int64

var (
	sizePattern = regexp.MustCompile(`^([1-9][0-9]{0,9})(B|KiB|MiB|GiB)$`)
	sizeUnits   = map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// UnmarshalText reads a Size.
func (s *Size) UnmarshalText(text []byte) error {
	parts := sizePattern.FindSubmatch(text)
	if parts == nil {
		return fmt.Errorf("must be a number of bytes with its unit, such as 512MiB")
	}
	n, err := strconv.ParseInt(string(parts[1]), 10, 64)
	unit := sizeUnits[string(parts[2])]
	if err != nil || n > math.MaxInt64/unit {
		return fmt.Errorf("must be fewer bytes")
	}
	*s = Size(n * unit)
	return nil
}
