package api_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
)

// idOf returns a UUID of version 7 as a device makes it whose clock shows at.
func idOf(at time.Time) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	return id
}

// clockIn returns the time that an id has in it, if it is of the layout of version 7.
func clockIn(id uuid.UUID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
}

// A seen photo is what a passer-by is shown of it.
type seenPhoto struct {
	id uuid.UUID
	at time.Time // when the service got it
}

// offset is by how much a device's clock is wrong, if the id has its time.
func (s seenPhoto) offset() time.Duration { return clockIn(s.id).Sub(s.at) }

// guessed counts the photos of which a passer-by finds the author: whoever has a
// photo with the nearest offset. Both have the authors for indices.
func guessed(named, unnamed []seenPhoto) (right int) {
	for author, photo := range unnamed {
		nearest := 0
		for i, other := range named {
			if (other.offset() - photo.offset()).Abs() < (named[nearest].offset() - photo.offset()).Abs() {
				nearest = i
			}
		}
		if nearest == author {
			right++
		}
	}
	return right
}

// A device's clock is wrong by as much in everything that the device sends, which
// tells the photos of one person from those of others, also of an anonymous report.
// Twenty residents add a photo to a report under their names, and six of them one
// to an anonymous report. The ids that their devices chose tell a passer-by who the
// six are; those that are shown do not.
func TestClocksOfDevicesTellNobody(t *testing.T) {
	t.Parallel()
	const residents, anonymous = 20, 6
	_, set := withFiles(t)
	s := newServer(t, set)
	add := func(name, privacy string, wrong time.Duration) (chosen, shown seenPhoto) {
		by := token(t, name, auth.Resident)
		filed, id := s.file(by, privacy).ID, idOf(time.Now().Add(wrong))
		ok[reportapi.Photo](s, put(photoPath(filed, id), by, "picture"), http.StatusAccepted)
		if _, err := s.pool.Exec(t.Context(), `update photos set state = 'ready' where report_id = $1`, filed); err != nil {
			t.Fatal(err)
		}
		list, _ := ok[reportapi.PhotoList](s, call{method: "GET", path: "/reports/" + filed.String() + "/photos"}, http.StatusOK)
		if len(list.Photos) != 1 {
			t.Fatalf("a passer-by sees %d photos, want 1", len(list.Photos))
		}
		at := list.Photos[0].CreatedAt
		return seenPhoto{id, at}, seenPhoto{list.Photos[0].ID, at}
	}
	var chosen, shown struct{ named, unnamed []seenPhoto }
	// A minute apart, so that it does not matter how long a request takes here.
	wrong := func(resident int) time.Duration { return time.Duration(resident*7%residents-residents/2) * time.Minute }
	for i := range residents {
		c, p := add(fmt.Sprint("resident-", i), "public", wrong(i))
		chosen.named, shown.named = append(chosen.named, c), append(shown.named, p)
	}
	for i := range anonymous {
		c, p := add(fmt.Sprint("resident-", i), "anonymous", wrong(i))
		chosen.unnamed, shown.unnamed = append(chosen.unnamed, c), append(shown.unnamed, p)
	}
	if got := guessed(chosen.named, chosen.unnamed); got != anonymous {
		t.Errorf("the ids that devices chose tell of %d authors, want all %d: is this an attack at all?", got, anonymous)
	}
	// By chance it is 0.3 of 6; four or more are once in ten thousand runs.
	if got := guessed(shown.named, shown.unnamed); got > 3 {
		t.Errorf("the ids that are shown tell of %d authors of %d", got, anonymous)
	}
}

var uuidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// Whatever a device chooses by itself stays between it and the service. Each place
// where it can choose an id gets one of every version that has a time, and a
// position comes with all the digits of its receiver. None of that is in any answer
// to anybody, nor in what is announced; and no id has another time than the
// service's.
func TestNobodySeesWhatDevicesChose(t *testing.T) { //nolint:funlen // every place where a device chooses, one after the other
	t.Parallel()
	_, set := withFiles(t)
	s := newServer(t, set)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	began := time.Now().Add(-time.Second)
	var marks []string
	mark := func() uuid.UUID {
		id := idOf(began.Add(-time.Duration(1+rand.IntN(1000)) * time.Hour))
		switch len(marks) / 2 % 3 {
		case 1:
			id = uuid.Must(uuid.NewUUID()) // version 1
		case 2:
			id = uuid.Must(uuid.NewV6())
		}
		marks = append(marks, id.String(), strings.ReplaceAll(id.String(), "-", ""))
		return id
	}
	headers := func() map[string]string {
		return map[string]string{
			"Idempotency-Key": mark().String(), "X-Request-ID": mark().String(), "User-Agent": mark().String(),
			"Accept-Language": "x-" + mark().String(), "Date": mark().String(), "Origin": "https://" + mark().String(), "Referer": "https://" + mark().String(),
		}
	}
	var paths, previews []string
	for _, privacy := range []string{"public", "anonymous"} {
		body := strings.NewReplacer("public", privacy, "-6.9,", "-6.914712345678901,", "107.6,", "107.609812345678901,").Replace(newReport)
		marks = append(marks, "6.9147123", "107.6098123")
		filed, _ := ok[reportapi.Report](s, call{method: "POST", path: "/reports", token: ann, body: body, headers: headers()}, http.StatusCreated)
		if *filed.Latitude != -6.91471 || *filed.Longitude != 107.60981 {
			t.Errorf("filed at %v, %v; want it to the metre", *filed.Latitude, *filed.Longitude)
		}
		path := "/reports/" + filed.ID.String()
		for i := range 3 {
			c := put(photoPath(filed.ID, mark())+"?alt=A+lamp", ann, fmt.Sprint("picture ", i))
			for name, value := range headers() {
				c.headers[name] = value
			}
			photo, _ := ok[reportapi.Photo](s, c, http.StatusAccepted)
			again, _ := ok[reportapi.Photo](s, c, http.StatusOK)
			if again.ID != photo.ID {
				t.Error("a repetition has another photo")
			}
			if v := photo.ID.Version(); v != 8 {
				t.Errorf("the photo's id has version %d, want one that no client chose", v)
			}
		}
		said := say(path, ann, anonymous)
		said.headers = headers()
		ok[reportapi.Comment](s, said, http.StatusCreated)
		paths = append(paths, path, path+"/photos", path+"/history", path+"/comments", path+"/work")
		previews = append(previews, s.url+path+"/preview")
	}
	if _, err := s.pool.Exec(t.Context(), `update photos set state = case when id in (select id from photos order by id limit 1) then 'held' else 'ready' end`); err != nil {
		t.Fatal(err)
	}
	paths = append(paths, "/reports", "/reports/queue?limit=10", "/reports/queue/photos?limit=10", "/reports/export", "/reports/moves",
		"/map/points?bbox=107,-7,108,-6&zoom=10", "/admin/outbox?state=pending")
	answers := make(map[string]string)
	for _, path := range paths {
		for who, token := range map[string]string{"nobody": "", "ben": token(t, "ben", auth.Resident), "olga": olga, "oscar": token(t, "oscar", auth.Operator)} {
			if a := s.do(call{method: "GET", path: path, token: token}); a.StatusCode == http.StatusOK {
				answers[who+" "+path] = string(a.body)
			}
		}
	}
	for _, preview := range previews { // a page, which the document does not describe
		res, err := http.Get(preview)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("preview: status %d, error %v", res.StatusCode, err)
		}
		answers[preview] = string(body)
	}
	for _, table := range []string{"outbox_messages", "reports", "photos", "comments", "report_acts"} {
		var rows json.RawMessage
		if err := s.pool.QueryRow(t.Context(), `select coalesce(json_agg(t), '[]') from `+table+` t`).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		answers["table "+table] = string(rows)
	}
	t.Logf("%d answers without %d marks", len(answers), len(marks))
	if len(answers) < 30 {
		t.Errorf("%d answers, want more: is this test looking at all?", len(answers))
	}
	for where, body := range answers {
		for _, m := range marks {
			if strings.Contains(body, m) {
				t.Errorf("%s shows %s, which a device chose:\n%s", where, m, body)
			}
		}
		for _, text := range uuidPattern.FindAllString(body, -1) {
			id := uuid.MustParse(text)
			v := id.Version()
			if v == 1 || v == 6 || v == 7 && (clockIn(id).Before(began) || clockIn(id).After(time.Now().Add(time.Second))) {
				t.Errorf("%s has the id %s, of version %d and another clock than the service's", where, id, v)
			}
		}
	}
}
