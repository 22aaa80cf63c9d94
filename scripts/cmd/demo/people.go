package main

import (
	"context"
	"time"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
)

// A person takes part with a screen.
type person struct {
	*client.Client
	name    string
	screen  int    // as the audit knows it
	privacy string // of the reports that the person files
}

// The cast. Fresh users each time: the demo may run again and again.
const (
	officialName  = "Olga"
	anonymousName = "Cleo"
)

var residentNames = []string{"Ana", "Ben", anonymousName}

// A cast is everyone with their screens.
type cast struct {
	people  map[string]*person
	screens *city.Screens
}

// enter signs everyone in and opens their screens.
func enter(ctx context.Context, gateway *client.Client, a *audit) (*cast, error) {
	c := &cast{people: make(map[string]*person), screens: city.NewScreens()}
	for i, name := range append([]string{officialName}, residentNames...) {
		role := "resident"
		if name == officialName {
			role = "moderator" // an official of the whole city, also where others work for departments
		}
		user, err := gateway.SignIn(ctx, name, role, "")
		if err != nil {
			return c, signInError(err)
		}
		p := &person{Client: user, name: name, screen: castScreens + i, privacy: "public"}
		if name == anonymousName {
			p.privacy = "anonymous"
		}
		c.people[name] = p
		if _, err := c.screens.Open(ctx, user, func(n client.Notification) {
			if n.Type == questionAsked || n.Type == questionAnswered { // the audit knows events by the version, which stays
				return
			}
			a.See(city.Sight{Report: n.ReportID, Version: n.ReportVersion, Screen: p.screen, Type: string(n.Type), Seen: time.Now()})
		}); err != nil {
			return c, err
		}
	}
	return c, nil
}
