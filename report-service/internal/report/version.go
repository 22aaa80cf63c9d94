package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// Versions is a set of versions of a report, as an If-Match header names it.
// The zero value has all of them.
type Versions struct {
	only []int64
	some bool // whether the set is limited to only
	weak bool // whether a weak tag was among them, which matches nothing
}

// VersionOnly returns the set that has nothing but v.
func VersionOnly(v int64) Versions { return Versions{only: []int64{v}, some: true} }

// Has reports whether v is in the set.
func (s Versions) Has(v int64) bool { return !s.some || slices.Contains(s.only, v) }

// StaleList refuses to replace a list because it is at another revision.
func (s Versions) StaleList(revision int64) error {
	return fault.New(Stale, fmt.Sprintf("somebody else has replaced the list, it is now at revision %d", revision))
}

// stale refuses a change because the report is at another version.
func (s Versions) stale(version int64) error {
	if s.weak {
		return fault.New(Stale, `a weak tag (W/…) matches no version; send the ETag of the answer, such as "3"`)
	}
	return fault.New(Stale, fmt.Sprintf("the report is now at version %d", version))
}

// ETag returns the entity tag of a report at version v.
func ETag(v int64) string { return `"` + strconv.FormatInt(v, 10) + `"` }

// ParseIfMatch reads an If-Match header (RFC 9110, section 13.1.1). A weak or
// foreign tag is valid and matches no version.
func ParseIfMatch(header string) (Versions, error) {
	if strings.TrimSpace(header) == "*" {
		return Versions{}, nil
	}
	set := Versions{some: true}
	for rest := header; ; {
		tag, weak, after, ok := cutTag(rest)
		if !ok {
			return Versions{}, fmt.Errorf(`must be * or entity tags joined by commas, such as "3"`)
		}
		set.weak = set.weak || weak
		// Only in the form of ETag: "03" and "+3" are other tags than "3".
		if v, err := strconv.ParseInt(tag, 10, 64); err == nil && !weak && strconv.FormatInt(v, 10) == tag {
			set.only = append(set.only, v)
		}
		if after == "" {
			return set, nil
		}
		if after[0] != ',' {
			return Versions{}, fmt.Errorf("must have a comma between entity tags")
		}
		rest = after[1:]
	}
}

// cutTag cuts the first entity tag off s and the white space around it.
func cutTag(s string) (tag string, weak bool, rest string, ok bool) {
	s, weak = strings.CutPrefix(strings.TrimLeft(s, " \t"), "W/")
	s, ok = strings.CutPrefix(s, `"`)
	if !ok {
		return "", false, "", false
	}
	tag, rest, ok = strings.Cut(s, `"`)
	return tag, weak, strings.TrimLeft(rest, " \t"), ok
}
