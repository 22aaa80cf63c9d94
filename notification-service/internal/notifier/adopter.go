package notifier

import (
	"context"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/postgres"
	"github.com/cityconnect/cityconnect/platform/consumer"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/failure"
	"github.com/cityconnect/cityconnect/platform/topology"
)

// adoptions is the name of the group, and of its queue without the usual beginning.
const adoptions = "adoptions"

// AdoptionsQueue is where messages about guests wait whom accounts have taken over.
const AdoptionsQueue = "queue." + adoptions

// An Adopter moves what guests have to the accounts that have taken them over.
type Adopter struct {
	store     *postgres.Adoptions
	announcer Announcer
	keyring   *event.Keyring
}

// NewAdopter returns an Adopter on store.
func NewAdopter(store *postgres.Adoptions, announcer Announcer, keyring *event.Keyring) *Adopter {
	return &Adopter{store, announcer, keyring}
}

// Group is the group of consumers whose effect a is.
func (a *Adopter) Group() consumer.Group {
	return consumer.Group{
		Name: adoptions, Queues: []topology.Queue{{Name: AdoptionsQueue, Keys: []event.Key{event.GuestAdoptedKey}}}, Effect: consumer.Typed(a),
	}
}

// Read opens the guest and the account. The account is nobody if it was erased since.
func (a *Adopter) Read(m consumer.Message) (postgres.Adoption, error) {
	adopted, ok := m.Event.(*event.GuestAdopted)
	if !ok {
		return postgres.Adoption{}, failure.Refuse("not a message about a guest")
	}
	account, err := recipient(a.keyring, adopted.ReportID, m.Headers)
	if err != nil {
		return postgres.Adoption{}, err
	}
	guest, err := a.keyring.Open(adopted.ReportID, adopted.Guest)
	if err != nil || guest == "" {
		return postgres.Adoption{}, &failure.Error{Class: failure.Permanent, Text: "guest does not open", Err: err}
	}
	return postgres.Adoption{Guest: guest, Account: account}, nil
}

// Apply makes the adoptions of the batch, and announces the streams that started over or ended.
func (a *Adopter) Apply(ctx context.Context, queue string, batch []consumer.Parsed[postgres.Adoption]) (seen int, err error) {
	seen, moved, err := a.store.Apply(ctx, queue, batch)
	if err == nil && len(moved) > 0 {
		a.announcer.Announce(notification.Batch{Notifications: moved})
	}
	return seen, err
}
