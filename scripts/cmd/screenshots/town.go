package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
	"github.com/cityconnect/cityconnect/scripts/internal/city"
	"github.com/cityconnect/cityconnect/scripts/internal/wait"
)

// A town is who lives there and what is broken.
type town struct {
	ana, ben, olga, oskar *client.Client
	voters                []*client.Client
	lamp                  client.Report // Ana's, and much voted for
	lastPending           string        // the title of a report that waits
	deadLetters           bool          // whether there are any
}

// A problem is a report as it will be filed.
type problem struct {
	title, text, address string
	category             int32
	latitude, longitude  float64
	anonymous            bool
	votes                int
	status, note         string
}

var problems = []problem{
	{"Graffiti on the library wall", "", "Jl. Juanda 6", 4, -6.5962, 106.7935, false, 2, "", ""},
	{"Rubbish piles up behind the market", "It has not been collected for two weeks.", "Pasar Bogor", 3, -6.6031, 106.7994, true, 19, "", ""},
	{"Deep pothole before the school gate", "Two motorcycles have fallen this week.", "Jl. Pajajaran 39", 1, -6.5948, 106.8063, false, 31, "in_progress", "A crew comes on Thursday."},
	{"Water leaks from the main", "The street is wet although it has not rained.", "Jl. Salak 12", 6, -6.5890, 106.7985, false, 8, "resolved", "The pipe was replaced."},
	{"Tree leans over the playground", "After the storm of last night.", "Taman Kencana", 5, -6.5874, 106.8014, true, 14, "in_progress", "The fire brigade secures it today."},
	{"Loud music every night", "", "Jl. Suryakencana 51", 10, -6.6038, 106.8006, true, 3, "rejected", "The venue has a permit until midnight."},
	{"Zebra crossing is worn away", "Drivers do not see it any more.", "Tugu Kujang", 8, -6.6012, 106.8052, false, 11, "", ""},
	{"Blocked drain floods the underpass", "With every rain, knee-deep.", "Jl. Ahmad Yani", 6, -6.5778, 106.7990, false, 22, "", ""},
	{"Streetlight is dark at the crossing", "Since Monday the whole crossing is dark after sunset. Children walk here on their way home from the afternoon school.",
		"Jl. Kapten Muslihat 8", 2, -6.5951, 106.7899, false, 27, "in_progress", "The cable is broken. A crew is on its way."},
}

// found lets everybody live their day.
func found(ctx context.Context, stack *client.Client) (*town, error) {
	t := &town{lastPending: problems[0].title}
	var err error
	for person, role := range map[**client.Client][2]string{
		&t.ana: {"Ana", "resident"}, &t.ben: {"Ben", "resident"}, &t.olga: {"Olga", "official"}, &t.oskar: {"Oskar", "operator"},
	} {
		if *person, err = stack.SignIn(ctx, role[0], role[1], ""); err != nil {
			return nil, err
		}
	}
	if t.voters, err = city.SignIn(ctx, stack, "Neighbour", "resident", 31); err != nil {
		return nil, err
	}
	for i, p := range problems {
		reporter := t.ana
		if i%3 == 1 {
			reporter = t.ben
		}
		if t.lamp, err = p.file(ctx, reporter, t.olga, t.voters); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// file files p, lets people vote and an official work.
func (p problem) file(ctx context.Context, reporter, official *client.Client, voters []*client.Client) (client.Report, error) {
	privacy := "public"
	if p.anonymous {
		privacy = "anonymous"
	}
	report, err := reporter.CreateReport(ctx, client.NewReport{
		Title: p.title, Description: p.text, CategoryID: p.category, Address: p.address,
		Latitude: &p.latitude, Longitude: &p.longitude, PrivacyLevel: client.PrivacyLevel(privacy),
	}, "Idempotency-Key", uuid.NewString())
	if err != nil {
		return report, err
	}
	for _, voter := range voters[:p.votes] {
		if _, err := voter.Vote(ctx, report.ID, "upvote"); err != nil {
			return report, err
		}
	}
	if p.status != "" {
		report, err = official.SetStatus(ctx, report.ID, p.status, p.note)
	}
	return report, err
}

// whileBusy calls do while the town goes about its day.
func (t *town) whileBusy(ctx context.Context, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	var fault error
	var day sync.WaitGroup
	day.Go(func() { fault = t.simulate(ctx) })
	err := do()
	stop()
	day.Wait()
	return errors.Join(err, fault)
}

// simulate lets people vote on the lamp and the official work on it, now
// faster, now slower, until ctx ends.
func (t *town) simulate(ctx context.Context) error {
	for i := 0; ctx.Err() == nil; i++ {
		if err := t.change(ctx, i); err != nil && ctx.Err() == nil {
			return fmt.Errorf("keep the town busy: %w", err)
		}
		perSecond := 25 + 20*math.Sin(float64(i)/150)
		_ = wait.For(ctx, time.Duration(float64(time.Second)/perSecond)) // the loop sees whether ctx has ended
	}
	return nil
}

// change makes the change with that number.
func (t *town) change(ctx context.Context, i int) error {
	const votes = 10 // to a change of the status
	if i%votes == 0 {
		_, err := t.olga.SetStatus(ctx, t.lamp.ID, []string{"pending", "in_progress"}[i/votes%2], "")
		return err
	}
	_, err := t.voters[i%len(t.voters)].Vote(ctx, t.lamp.ID, []string{"downvote", "upvote"}[i/len(t.voters)%2])
	return err
}
