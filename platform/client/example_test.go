package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/client"
)

// listen prints the user's notifications until ctx ends: those so far, and each that
// comes, once and in order.
func listen(ctx context.Context, user *client.Client) error {
	page, err := user.Notifications(ctx, "", 50)
	if err != nil {
		return err
	}
	fmt.Println(len(page.Notifications), "notifications")
	stream := &client.Stream{Client: user, Path: "/notifications/stream", LastID: page.LastEventID}
	stream.Handle = func(e client.Event) {
		switch e.Type {
		case "notification":
			var n client.Notification
			if err := json.Unmarshal(e.Data, &n); err == nil {
				fmt.Println(e.ID, n.Type, n.ReportTitle)
			}
		case "reset":
			fmt.Println("fetch the list again")
		}
	}
	return stream.Run(ctx)
}

// report files a report, once, however often it has to be sent.
func report(ctx context.Context, user *client.Client) (client.Report, error) {
	latitude, longitude := -6.5952, 106.7989
	var filed client.Report
	err := user.Insist(ctx, "POST", "/reports", client.NewReport{
		Title: "Street lamp is dark", Description: "Since Monday", CategoryID: 2,
		Latitude: &latitude, Longitude: &longitude, PrivacyLevel: "anonymous",
	}, &filed, "Idempotency-Key", uuid.NewString())
	return filed, err
}

// A user files a report and listens to what becomes of it.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	user := client.New("https://city.example.org").As("", os.Getenv("TOKEN"))
	filed, err := report(ctx, user)
	if err != nil {
		panic(err)
	}
	fmt.Println("filed", filed.ID)
	if err := listen(ctx, user); err != nil {
		panic(err) // such as client.ErrEnded: the token has ended
	}
}

// Any operation, with the types that are generated from its document.
func ExampleClient_Do() {
	var list struct {
		Reports []client.Report `json:"reports"`
	}
	anybody := client.New("https://city.example.org")
	if err := anybody.Do(context.Background(), "GET", "/reports?status=pending", nil, &list); err != nil {
		fmt.Println(client.StatusOf(err), err)
	}
}
