package email

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
	"github.com/cityconnect/cityconnect/platform/config"
	"github.com/cityconnect/cityconnect/platform/event"
)

// Examples returns every mail in a language as HTML, by its kind, filled as it may
// be in a city, and the page that ends mails.
func Examples(language wording.Language) (map[string]string, error) {
	jakarta, err := time.LoadLocation("Asia/Jakarta")
	if err != nil {
		return nil, fmt.Errorf("load zone: %w", err)
	}
	status := notification.Data{
		Type: event.StatusUpdatedKey, ReportID: uuid.New(), ReportTitle: "Lampu jalan padam di perempatan Jl. Kapten Muslihat",
		Status: event.InProgress, Note: "Kabelnya putus. Petugas sedang dalam perjalanan.", HappenedAt: time.Date(2026, 11, 22, 2, 15, 0, 0, time.UTC),
	}
	vote := status
	vote.Type, vote.ReportTitle, vote.Status, vote.Note, vote.Score = event.VoteReceivedKey, "Sampah menumpuk di belakang Pasar Bogor", "", "", new(int64(27))
	corrected := status
	corrected.Type, corrected.Status, corrected.Note = event.CorrectedKey, "", "Lampunya ada di perempatan sebelah."
	asked := status
	asked.Type, asked.Status, asked.Note = event.AskedKey, "", ""
	reminded := asked
	reminded.Type = event.RemindedKey
	resolved := status
	resolved.Status, resolved.ReportTitle, resolved.Note = event.Resolved, "Pipa air bocor", "Pipanya sudah diganti."
	resolved.VerdictUntil = new(time.Date(2026, 12, 4, 17, 0, 0, 0, time.UTC))

	firm := event.FirmNotice{
		Subject: event.Subject{ReportID: uuid.New(), ReportTitle: status.ReportTitle, Latitude: new(-6.5944), Longitude: new(106.789)}, Number: "ABCD-EFGH", CategoryName: "Lampu jalan dan lampu lalu lintas",
		Address: "Jl. Kapten Muslihat 51", Text: "Tiang ketiga dari perempatan.", EndsOn: "2026-12-14", Photos: []uuid.UUID{uuid.New()},
	}

	all := make(map[string]string)
	for kind, of := range map[string]struct {
		total, withheld int64
		items           []notification.Data
		notice          Notice
		called          *Called
	}{
		Code:                           {},
		Anonymous:                      {},
		string(event.StatusUpdatedKey): {total: 1, items: []notification.Data{status}},
		string(event.VoteReceivedKey):  {total: 1, items: []notification.Data{vote}},
		string(event.CorrectedKey):     {total: 1, items: []notification.Data{corrected}},
		string(event.AskedKey):         {total: 1, items: []notification.Data{asked}},
		string(event.RemindedKey):      {total: 1, items: []notification.Data{reminded}},
		Proof:                          {called: &Called{Category: "Lampu jalan dan lampu lalu lintas", EnteredAt: status.HappenedAt}},
		callerNews:                     {total: 1, items: []notification.Data{status}, called: &Called{Shown: true}},
		Digest:                         {total: 27, withheld: 2, items: []notification.Data{status, resolved, vote}},
		Overdue: {notice: Notice{Overdue: []OverdueCount{
			{CategoryID: 2, Category: "Street lights and signals", Count: 3}, {CategoryID: 3, Category: "Waste and illegal dumping", Count: 1}}}},
		EndpointDisabled: {notice: Notice{Endpoint: "tickets.city.example.org", Reason: "failing"}},
		EndpointFailing:  {notice: Notice{Endpoint: "tickets.city.example.org", Hours: 60}},
		FirmAsked:        {}, FirmReminded: {}, FirmEnded: {},
		TargetDiffers: {notice: Notice{Endpoint: "Works department"}},
	} {
		t := mailText{
			Language: language, PublicURL: "https://city.example.org", City: "Kota Bogor", Zone: jakarta,
			Links: config.CityLinks{Privacy: "https://city.example.org/privacy", Imprint: "https://city.example.org/imprint"},
			Total: of.total, WithheldItems: of.withheld, Called: of.called,
		}
		for _, data := range of.items {
			encoded, err := json.Marshal(data)
			if err != nil {
				return nil, fmt.Errorf("encode notification: %w", err)
			}
			if err := t.add(wording.Item{Data: encoded, Withheld: of.called != nil}); err != nil {
				return nil, err
			}
		}
		if err := t.addExample(kind, &of.notice, &firm); err != nil {
			return nil, err
		}
		mail, err := write(kind, &t)
		if err != nil {
			return nil, err
		}
		all[kind] = mail.HTML
	}
	return all, addPages(all, language)
}

// addExample adds what mails have that are not about notifications.
func (t *mailText) addExample(kind string, notice *Notice, firm *event.FirmNotice) error {
	switch kind {
	case Code:
		t.Code = "480213"
	case Proof:
		return t.addProof("token")
	case Overdue, EndpointDisabled, EndpointFailing, TargetDiffers:
		return t.addNotice(notice)
	case FirmAsked, FirmReminded, FirmEnded:
		return t.addFirm(firm, "token")
	default:
		t.Unsubscribe = "https://city.example.org/u/token"
	}
	return nil
}

// addPages adds the pages behind the links in mails.
func addPages(all map[string]string, language wording.Language) error {
	for name, caller := range map[string]Caller{
		"proving": {State: Unverified, Language: language}, "proved": {State: Active, Language: language}, "unproven": {Language: language},
	} {
		page, err := ProofPage(caller)
		if err != nil {
			return err
		}
		all[name] = string(page)
	}
	for name, ended := range map[string]bool{"ending": false, "ended": true} {
		page, err := UnsubscribePage(Unsubscription{Kind: Digest, Language: language, Ended: ended})
		if err != nil {
			return err
		}
		all[name] = string(page)
	}
	return nil
}
