package report

import "time"

// A SettingChange is an operator's change of one of the city's settings.
type SettingChange struct {
	At      time.Time
	By      Official       // with an empty name if it is not known
	Setting string         // categories, departments, calendar, areas, assets
	Detail  map[string]any // what it changed: ids, counts, days
}
