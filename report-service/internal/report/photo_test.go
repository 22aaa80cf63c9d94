package report_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/fault"
	"github.com/cityconnect/cityconnect/report-service/internal/report"
)

func TestWhoMayChangePhotos(t *testing.T) {
	t.Parallel()
	f := report.Filing{Reporter: report.Reporter{ID: "ann"}}
	erased := report.Filing{}
	for _, tt := range []struct {
		name     string
		filing   *report.Filing
		by       report.User
		wantCity bool
		wantKind fault.Kind
	}{
		{"reporter", &f, report.User{ID: "ann"}, false, ""},
		{"reporter who is an official", &f, report.User{ID: "ann", Official: true}, false, ""},
		{"official", &f, report.User{ID: "ben", Official: true}, true, ""},
		{"another resident", &f, report.User{ID: "ben"}, false, report.NotReporter},
		{"nobody, of a report that is nobody's", &erased, report.User{}, false, report.NotReporter},
	} {
		city, err := tt.by.ActsForCity(tt.filing)
		if city != tt.wantCity || fault.KindOf(err) != tt.wantKind {
			t.Errorf("%s: city %v, error %v; want %v, kind %q", tt.name, city, err, tt.wantCity, tt.wantKind)
		}
	}
}

// A state that a verdict, a removal, a showing or a redaction leads to.
func TestPhotoStates(t *testing.T) {
	t.Parallel()
	photo := func(state report.PhotoState, official bool) report.Photo {
		return report.Photo{ID: uuid.New(), State: state, Official: official}
	}
	for _, tt := range []struct {
		official bool
		verdict  report.Judgement
		want     report.PhotoState
	}{
		{false, report.Judgement{}, report.PhotoReady},
		{false, report.Judgement{Hold: true}, report.PhotoHeld},
		{true, report.Judgement{Hold: true}, report.PhotoReady},
		{false, report.Judgement{Hold: true, Reason: report.PhotoDamaged}, report.PhotoRefused},
	} {
		if got := photo(report.PhotoChecking, tt.official).Judge(tt.verdict); got != tt.want {
			t.Errorf("official %v, %+v: %s, want %s", tt.official, tt.verdict, got, tt.want)
		}
	}
	for _, tt := range []struct {
		photo      report.Photo
		city       bool
		wantState  report.PhotoState
		wantReason report.PhotoReason
		wantKind   fault.Kind
	}{
		{photo(report.PhotoReady, false), false, report.PhotoRemoved, "", ""},
		{photo(report.PhotoReady, false), true, report.PhotoRemoved, "", ""},
		{photo(report.PhotoReady, true), false, "", "", report.NotReporter},
		{photo(report.PhotoHeld, false), false, report.PhotoRemoved, "", ""},
		{photo(report.PhotoHeld, false), true, report.PhotoRefused, report.PhotoUnsuitable, ""},
		{photo(report.PhotoChecking, false), true, report.PhotoRemoved, "", ""},
		{photo(report.PhotoRefused, false), false, report.PhotoRemoved, "", ""},
	} {
		state, reason, err := tt.photo.Remove(tt.city)
		if state != tt.wantState || reason != tt.wantReason || fault.KindOf(err) != tt.wantKind {
			t.Errorf("Remove of %s, city %v: %s, %q, %v; want %s, %q, %q", tt.photo.State, tt.city, state, reason, err, tt.wantState, tt.wantReason, tt.wantKind)
		}
	}
	for _, state := range []report.PhotoState{report.PhotoChecking, report.PhotoReady, report.PhotoRefused, report.PhotoRemoved} {
		if err := photo(state, false).Show(true); fault.KindOf(err) != fault.Conflict {
			t.Errorf("Show of %s: %v, want a conflict", state, err)
		}
	}
	if err := photo(report.PhotoHeld, false).Show(false); fault.KindOf(err) != report.NotReporter {
		t.Errorf("Show by the reporter: %v", err)
	}
}

func TestPhotoLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ofReport, today int
		city            bool
		want            fault.Kind
	}{
		{4, 19, false, ""}, {5, 0, false, report.TooManyPhotos}, {5, 0, true, report.TooManyPhotos},
		{0, 20, false, report.PhotoQuota}, {0, 20, true, ""},
	} {
		if err := report.CheckPhotos(tt.ofReport, tt.today, tt.city); fault.KindOf(err) != tt.want {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// The reasons of the domain are those of the contract.
func TestPhotoReasonsTravel(t *testing.T) {
	t.Parallel()
	for _, reason := range []report.PhotoReason{
		report.PhotoUnsupported, report.PhotoTooLarge, report.PhotoDamaged, report.PhotoInfected, report.PhotoUnsuitable, report.PhotoFailed,
	} {
		m := event.PhotoRefused{
			Subject: event.Subject{ReportID: uuid.New(), ReportVersion: 1, ReportTitle: "Dark lamp", Timestamp: 1},
			PhotoID: uuid.New(), Reason: event.PhotoReason(reason),
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// A photo's id has room for chance alone.
func TestPhotoID(t *testing.T) {
	t.Parallel()
	all := [16]byte{}
	for i := range all {
		all[i] = 0xff
	}
	for random, want := range map[[16]byte]string{
		{}:  "00000000-0000-8000-8000-000000000000",
		all: "ffffffff-ffff-8fff-bfff-ffffffffffff",
	} {
		got := report.PhotoID(random)
		if got.String() != want || !report.IsPhotoID(got) || got.Variant() != uuid.RFC4122 {
			t.Errorf("%s of version %d, want %s", got, got.Version(), want)
		}
	}
	if report.IsPhotoID(uuid.New()) || report.IsPhotoID(uuid.Must(uuid.NewV7())) || report.IsPhotoID(uuid.Nil) {
		t.Error("another version counts as that of a photo")
	}
}
