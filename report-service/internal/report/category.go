package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/platform/fault"
)

// A Category is what a report is about, in the city's own words.
type Category struct {
	ID      int32                   // 0 for one that is not stored yet
	Name    string                  // in the city's first language, as messages carry it
	Icon    string                  // the name of a picture that the page has; empty for a neutral one
	Accepts bool                    // whether it takes reports; otherwise its hint says where to turn
	Retired bool                    // whether only reports from before have it
	Texts   map[string]CategoryText // by language, such as "en"
	Target  time.Duration           // in which the city intends to finish its work on a report; 0 for none
	// Signposts say where people turn in some areas instead, in the order of the areas' ids.
	Signposts []AreaSignpost
}

// An AreaSignpost takes the place of a category in an area.
type AreaSignpost struct {
	Area  int32 // its id; 0 for outside of all
	Texts map[string]SignpostText
}

// A SignpostText is what residents read of a signpost in one language.
type SignpostText struct {
	Text string
	Link string // may be empty
}

// A CategoryText is what residents read of a category in one language.
type CategoryText struct {
	Name  string
	Hint  string // what belongs there, or where to turn instead; may be empty
	Group string // the heading under which it is listed; empty for none
	Link  string // of a signpost in an area; empty for none
}

// Text returns the texts in the first of languages that it has any in. A city that
// has begun to use another language has none in it until an operator writes them.
func (c Category) Text(languages ...string) CategoryText {
	for _, language := range languages {
		if t, ok := c.Texts[language]; ok {
			return t
		}
	}
	return CategoryText{Name: c.Name}
}

// Nowhere is the area of what has no place; outside of all areas is 0.
const Nowhere int32 = -1

// At returns the id of the area of a report that may have no position.
func (a Area) At(p *Position) int32 {
	if p == nil {
		return Nowhere
	}
	return a.ID
}

// In returns the category as it is in an area: a signpost there says in the hint where to
// turn, and nothing can be filed under it.
func (c Category) In(area int32) Category {
	i := slices.IndexFunc(c.Signposts, func(s AreaSignpost) bool { return s.Area == area })
	if i < 0 || !c.Accepts {
		return c
	}
	texts := make(map[string]CategoryText, len(c.Texts))
	for language, t := range c.Texts {
		s := c.Signposts[i].Texts[language]
		texts[language] = CategoryText{Name: t.Name, Group: t.Group, Hint: s.Text, Link: s.Link}
	}
	c.Accepts, c.Texts = false, texts
	return c
}

// Usable returns an error if nothing can be filed under the category. A signpost's
// says where to turn, in the first of languages that it has.
func (c Category) Usable(languages ...string) error {
	switch text := c.Text(languages...); {
	case c.Retired:
		return fault.NewInvalid("/category_id", "must be a category that is still in use; GET /categories has them")
	case !c.Accepts && text.Hint == "":
		return fault.New(Signpost, text.Name+" takes no reports")
	case !c.Accepts:
		return fault.New(Signpost, strings.TrimSpace(text.Hint+" "+text.Link))
	}
	return nil
}

// A CategoryList is a city's categories in their order, with those that are retired
// behind the others.
type CategoryList struct {
	Revision   int64 // how often it was replaced
	Categories []Category
}

// A CategoryChange is one replacement of the list.
type CategoryChange struct {
	At                      time.Time
	Actor                   string // the operator's id
	ActorName               string // "" if it is not known
	Added, Changed, Retired int32
	Moved                   bool // whether those in use are in another order
}

// Missing returns how many of the categories in use have no text, by language.
func (l CategoryList) Missing(languages []string) map[string]int {
	missing := make(map[string]int)
	for _, c := range l.Categories {
		for _, language := range languages {
			if _, ok := c.Texts[language]; !ok && !c.Retired {
				missing[language]++
			}
		}
	}
	return missing
}

// CheckCategories returns what is wrong with categories as the complete list of a city
// whose residents read languages.
func CheckCategories(categories []Category, languages []string) error {
	ids, names := make(map[int32]bool), make(map[string]bool)
	accepts := false
	for i, c := range categories {
		at := fmt.Sprintf("/categories/%d/", i)
		if c.ID != 0 && ids[c.ID] {
			return fault.NewInvalid(at+"id", "is already used by another category")
		}
		ids[c.ID] = true
		accepts = accepts || c.Accepts
		for _, language := range languages {
			name := c.Texts[language].Name
			key := language + " " + strings.ToLower(name)
			switch {
			case name == "":
				return fault.NewInvalid(at+"texts", fmt.Sprintf("must have a name in each of the city's languages (%s); %s is missing", strings.Join(languages, ", "), language))
			case names[key]:
				return fault.NewInvalid(at+"texts", fmt.Sprintf("has a name that another category has in the language %s", language))
			}
			names[key] = true
			for j, s := range c.Signposts {
				if s.Texts[language].Text == "" {
					return fault.NewInvalid(fmt.Sprintf("%ssignposts/%d/texts", at, j), fmt.Sprintf("must have a text in each of the city's languages (%s); %s is missing", strings.Join(languages, ", "), language))
				}
			}
		}
	}
	if !accepts {
		return fault.NewInvalid("/categories", "must have a category that accepts reports")
	}
	return nil
}

// Same reports whether residents see no difference between c and other, wherever they
// are in the list.
func (c Category) Same(other Category) bool {
	sameSignpost := func(a, b AreaSignpost) bool { return a.Area == b.Area && maps.Equal(a.Texts, b.Texts) }
	return c.Icon == other.Icon && c.Accepts == other.Accepts && c.Retired == other.Retired && maps.Equal(c.Texts, other.Texts) &&
		slices.EqualFunc(c.Signposts, other.Signposts, sameSignpost)
}
