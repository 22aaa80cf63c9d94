package main

import (
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// scenes are the screens of a quiet moment, the main ones in both themes and
// on a phone too.
func scenes(t *town) []scene {
	report := "reports/" + t.lamp.ID.String()
	drawn := browser.Until(`document.querySelector('.map-canvas[data-drawn] .dot')`)
	reports := []browser.Action{browser.See(".card", t.lamp.Title), drawn}
	detail := []browser.Action{browser.See("h1", t.lamp.Title), browser.See(".timeline", "In progress"), drawn}
	create := []browser.Action{
		browser.Until(`document.querySelector('.map-canvas[data-drawn]')`),
		browser.Click(".maplibregl-canvas", ""),
		browser.See("[role=status]", "✓"),
	}
	privacy := []browser.Action{
		browser.Click("label.option", "Anonymous"),
		browser.See(".who-sees", "never your name"),
	}
	panel := []browser.Action{browser.Click("button.bell", "Notifications"), browser.See(".group", t.lamp.Title)}
	queue := []browser.Action{browser.Click(".task a", t.lastPending), browser.See(".internal", "Only officials")}
	change := append(queue, browser.Click(".chip", "Rejected"),
		browser.Fill("Why?", "This wall belongs to a shop; we have told its owner."))

	all := []scene{
		{"reports", t.ana, "", desk, "light", reports},
		{"reports-dark", t.ana, "", desk, "dark", reports},
		{"reports-phone", t.ana, "", phone, "light", reports[:1]},
		{"report", t.ana, report, desk, "light", detail},
		{"report-phone-dark", t.ben, report, phone, "dark", detail[:1]},
		{"new", t.ana, "new", desk, "light", create},
		{"new-phone-dark", t.ana, "new", phone, "dark", create},
		{"new-what-phone", t.ana, "new?step=2", phone, "light", []browser.Action{browser.See(".categories label", "Street lights")}},
		{"new-privacy-phone", t.ana, "new?step=4", phone, "light", privacy},
		{"map-phone", t.ana, "?view=map", phone, "light", []browser.Action{drawn}},
		{"mine", t.ana, "mine", desk, "light", []browser.Action{browser.See(".card", t.lamp.Title)}},
		{"notifications", t.ana, "", desk, "light", panel},
		{"notifications-phone", t.ana, "", phone, "light", panel},
		{"queue", t.olga, "queue", desk, "light", queue},
		{"change-status", t.olga, "queue", desk, "light", change},
		{"sign-in", nil, "sign-in", desk, "light", []browser.Action{browser.See("h1", "Sign in")}},
	}
	if !t.deadLetters {
		return all
	}
	groups := []browser.Action{browser.See(".rows strong", "message")}
	group := append(groups, browser.Click(".rows a", "report_title"), browser.See(".state", "Open"))
	return append(all,
		scene{"console", t.oskar, "ops", desk, "light", []browser.Action{browser.See(".light", "Open:")}},
		scene{"console-phone-dark", t.oskar, "ops", phone, "dark", []browser.Action{browser.See(".light", "Open:")}},
		scene{"console-dead-letters", t.oskar, "ops/dead-letters", desk, "light", groups},
		scene{"console-replay", t.oskar, "ops/dead-letters", desk, "light",
			append(groups, browser.Click(".rows button", "Replay"), browser.Click("button", "Dry run"), browser.See(".note", "would send"))},
		scene{"console-dead-letter", t.oskar, "ops/dead-letters", desk, "light",
			append(group, browser.Click(".rows a", "report_title"), browser.See("pre", "category_name"))},
	)
}

// busyScenes are the screens that show what is going on.
func busyScenes(t *town) []scene {
	// A minute of steps of ten seconds, which are there a moment after they are over.
	drawn := browser.Until(`document.querySelector('.chart .area')?.getAttribute('d').split('L').length > 6`)
	lately := browser.Choose("Time shown", "The last 15 minutes")
	queues := []browser.Action{browser.See("th button", "queue."), lately, drawn}
	return []scene{
		{"console-queues", t.oskar, "ops/queues", desk, "light", queues},
		{"console-queues-phone", t.oskar, "ops/queues", phone, "dark", queues},
		{"console-outbox", t.oskar, "ops/outbox", desk, "light", []browser.Action{browser.See("dt", "Waiting"), lately, drawn}},
	}
}
