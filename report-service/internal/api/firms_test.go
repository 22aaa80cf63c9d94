package api_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cityconnect/cityconnect/platform/auth"
	"github.com/cityconnect/cityconnect/platform/client/reportapi"
	"github.com/cityconnect/cityconnect/platform/event"
	"github.com/cityconnect/cityconnect/platform/testing/scheduletest"
	"github.com/cityconnect/cityconnect/report-service/internal/postgres"
)

// firms makes the list of a department, and returns the ids by name.
func (s *testServer) firms(department int, list string) map[string]uuid.UUID {
	s.t.Helper()
	set, _ := ok[reportapi.Firms](s, call{method: "PUT", path: fmt.Sprintf("/reports/firms?department_id=%d", department),
		token: tokenOf(s.t, "olga", auth.Official, "lights", "roads"), body: `{"firms":[` + list + `]}`}, http.StatusOK)
	ids := make(map[string]uuid.UUID)
	for _, f := range set.Firms {
		ids[f.Name] = f.ID
	}
	return ids
}

const lampu = `{"name":"Lampu Jaya","address":"office@lampu.example"}`

// send sends a report to a firm, and returns the end of its link.
func (s *testServer) send(rep, firm uuid.UUID) string {
	s.t.Helper()
	s.wantStatus(http.StatusNoContent, call{method: "POST", path: "/reports/" + rep.String() + "/firm", token: tokenOf(s.t, "olga", auth.Official, "lights", "roads"),
		body: fmt.Sprintf(`{"firm_id":%q,"text":"The third lamp."}`, firm)})
	var job uuid.UUID
	var sealed string
	if err := s.pool.QueryRow(s.t.Context(), `select id, link from firm_jobs where report_id = $1 and ended_at is null`, rep).Scan(&job, &sealed); err != nil {
		s.t.Fatal(err)
	}
	link, err := s.keys.Open(job, sealed)
	if err != nil || !strings.HasPrefix(link, "ccj_") || len(link) != len("ccj_")+26 {
		s.t.Fatalf("link %q, %v: want ccj_ and 26 letters of 5 bits", link, err)
	}
	return link
}

// withFirm returns a city with a firm of the department of lamps, and a report that it has.
func withFirm(t *testing.T, options ...func(*parts)) (s *testServer, firm, rep uuid.UUID, link string) {
	t.Helper()
	s = newServer(t, options...)
	s.setDepartments()
	firm = s.firms(7, lampu)["Lampu Jaya"]
	rep = s.fileAbout(token(t, "ann", auth.Resident), 2, "Dark lamp")
	return s, firm, rep, s.send(rep, firm)
}

func said(state, text string) string { return fmt.Sprintf(`{"said":%q,"text":%q}`, state, text) }

// The words of a firm are an act for officials, once; its photo waits for them, and the status is
// theirs.
func TestFirmWorks(t *testing.T) {
	t.Parallel()
	_, set := withFiles(t)
	s, _, rep, link := withFirm(t, set, func(p *parts) { p.Desk = auth.DepartmentDesk })
	olga := tokenOf(t, "olga", auth.Official, "lights")
	job, _ := ok[reportapi.Job](s, call{method: "GET", path: "/reports/job", token: link}, http.StatusOK)
	if job.Title != "Dark lamp" || job.FirmName != "Lampu Jaya" || job.DepartmentName != "Lights" || job.Text != "The third lamp." ||
		job.EndsAt.Before(time.Now().AddDate(0, 0, 13)) || job.EndsAt.After(time.Now().AddDate(0, 0, 16)) {
		t.Errorf("job %+v", job)
	}
	for _, body := range []string{said("accepted", ""), said("accepted", ""), said("done", "New bulb"), said("done", "New bulb")} {
		ok[reportapi.Job](s, call{method: "POST", path: "/reports/job", token: link, body: body}, http.StatusOK)
	}
	s.wantStatus(http.StatusBadRequest, call{method: "POST", path: "/reports/job", token: link, body: said("cannot", " ")})
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 64, 64)), nil); err != nil {
		t.Fatal(err)
	}
	upload := call{method: "PUT", path: "/reports/" + rep.String() + "/photos/" + uuid.NewString(), token: link, body: photo.String(), headers: map[string]string{"Content-Type": "image/jpeg"}}
	s.wantStatus(http.StatusForbidden, upload) // of the damage
	upload.path += "?purpose=after"
	s.wantStatus(http.StatusAccepted, upload)
	s.wantStatus(http.StatusOK, upload)
	var held uuid.UUID
	if err := s.pool.QueryRow(t.Context(), `update photos set state = 'held' where report_id = $1 and official and hold returning id`, rep).Scan(&held); err != nil {
		t.Errorf("the photo does not wait for an official: %v", err)
	}

	list, _ := ok[reportapi.PhotoList](s, call{method: "POST", path: "/reports/" + rep.String() + "/photos/" + held.String() + "/show", token: olga}, http.StatusOK)
	if len(list.Photos) != 1 || list.Photos[0].State != reportapi.Ready {
		t.Errorf("photos %+v, want one that everybody sees", list.Photos)
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: "/reports/" + rep.String() + "/work", token: olga}, http.StatusOK)
	var acts []string
	for _, a := range work.Acts {
		acts = append(acts, a.By.Name+" "+string(a.Action)+" "+a.Text)
	}
	const want = "olga firm Lampu Jaya: The third lamp., Lampu Jaya firm_accepted , Lampu Jaya firm_done New bulb, Lampu Jaya add_photo , olga show_photo "
	if got := strings.Join(acts, ", "); !strings.EqualFold(got, want) {
		t.Errorf("acts %q, want %q", got, want)
	}
	if j := work.Job; j == nil || j.Ended || j.Said != reportapi.JobStateDone || j.SaidText != "New bulb" || work.Report.Status != "pending" {
		t.Errorf("officials read %+v of the job, and status %s", j, work.Report.Status)
	}
}

// A link ends with its time, with another firm, another department and the report; it opens
// no other report; and a robot's GET or HEAD changes nothing.
func TestLinkEnds(t *testing.T) {
	t.Parallel()
	s, firm, rep, link := withFirm(t)
	ann, olga := token(t, "ann", auth.Resident), token(t, "olga", auth.Official)
	state := func() string {
		var all string
		if err := s.pool.QueryRow(t.Context(), `
			select coalesce((select string_agg(to_jsonb(j)::text, '' order by j.id) from firm_jobs j), '') || (select count(*) from report_acts) || (select count(*) from photos) || (select count(*) from outbox_messages)`).
			Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	other, before := s.fileAbout(ann, 2, "Another lamp"), state()
	for range 3 {
		s.wantStatus(http.StatusOK, call{method: "GET", path: "/reports/job", token: link})
		s.do(call{method: "HEAD", path: "/reports/job", token: link})
		s.wantStatus(http.StatusNotFound, call{method: "PUT", path: "/reports/" + other.String() + "/photos/" + uuid.NewString() + "?purpose=after", token: link, body: "x", headers: map[string]string{"Content-Type": "image/jpeg"}})
		s.wantStatus(http.StatusForbidden, call{method: "GET", path: "/reports/" + other.String(), token: link})
		s.wantStatus(http.StatusForbidden, call{method: "PATCH", path: "/reports/" + rep.String() + "/status", token: link, body: `{"status":"resolved"}`})
	}
	if after := state(); after != before {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}
	wantEnded := func(why, link string) {
		t.Helper()
		before := state()
		for _, c := range []call{
			{method: "GET", path: "/reports/job"}, {method: "POST", path: "/reports/job", body: said("done", "")},
			{method: "PUT", path: "/reports/" + rep.String() + "/photos/" + uuid.NewString() + "?purpose=after", body: "x", headers: map[string]string{"Content-Type": "image/jpeg"}},
		} {
			c.token = link
			if a := s.do(c); a.StatusCode != http.StatusUnauthorized && a.StatusCode != http.StatusNotFound {
				t.Errorf("%s, %s %s: status %d %s", why, c.method, c.path, a.StatusCode, a.body)
			}
		}
		if state() != before {
			t.Errorf("%s: a link that has ended changes something", why)
		}
	}
	again := s.send(rep, firm)
	wantEnded("another firm", link)
	if _, err := s.pool.Exec(t.Context(), `update firm_jobs set ends_at = now() where ended_at is null`); err != nil {
		t.Fatal(err)
	}
	wantEnded("its time", again)
	hidden := s.send(rep, firm)
	s.hide(token(t, "max", auth.Moderator), rep, "insults")
	wantEnded("hidden", hidden)
	if _, err := s.pool.Exec(t.Context(), `update reports set hidden_reason = null`); err != nil {
		t.Fatal(err)
	}
	for why, c := range map[string]call{
		"closed":    {method: "PATCH", path: "/status", body: `{"status":"rejected","note":"Not ours"}`},
		"forwarded": {method: "POST", path: "/forward", body: `{"department_id":8,"reason":"theirs"}`},
		"assigned":  {method: "PUT", path: "/assignment", body: `{"department_id":8}`},
		"corrected": {method: "PATCH", path: "", body: `{"category_id":1,"reason":"a road"}`},
	} {
		rep = s.fileAbout(ann, 2, "Lamp "+why)
		link := s.send(rep, firm)
		c.path, c.token = "/reports/"+rep.String()+c.path, olga
		if a := s.do(c); a.StatusCode >= 300 {
			t.Fatalf("%s: %d %s", why, a.StatusCode, a.body)
		}
		wantEnded(why, link)
		if n := s.count(`select count(*) from firm_jobs where report_id = $1 and (ended_at is null or link <> '')`, rep); n > 0 {
			t.Errorf("%s: the link is still there", why)
		}
	}
	rep = s.fileAbout(ann, 2, "Lamp of a firm that goes")
	last := s.send(rep, firm)
	ok[reportapi.Job](s, call{method: "POST", path: "/reports/job", token: last, body: said("accepted", "")}, http.StatusOK)
	s.firms(7, `{"name":"Other","address":"other@firm.example"}`)
	wantEnded("the firm is deleted", last)
	if n := s.count(`select count(*) from firms where address like '%lampu%'`) + s.count(`select count(*) from firm_jobs`) + s.count(`select count(*) from settings_audit where detail::text like '%@%'`); n > 0 {
		t.Errorf("%d rows have something of a firm that is deleted", n)
	}
	work, _ := ok[reportapi.Work](s, call{method: "GET", path: "/reports/" + rep.String() + "/work", token: olga}, http.StatusOK)
	if n := len(work.Acts); n != 2 || work.Acts[1].By.Name != "Lampu Jaya" || work.Job != nil {
		t.Errorf("acts %+v, job %+v", work.Acts, work.Job)
	}
}

// A firm reads nothing of a reporter: the same of a named and an anonymous one, and no words
// of a report that only the city sees.
func TestFirmReadsNobody(t *testing.T) {
	t.Parallel()
	s, firm, rep, link := withFirm(t)
	worlds := map[string]string{}
	for _, privacy := range []string{"public", "anonymous"} {
		if _, err := s.pool.Exec(t.Context(), `update reports set privacy_level = $2 where id = $1`, rep, privacy); err != nil {
			t.Fatal(err)
		}
		worlds[privacy] = string(s.do(call{method: "GET", path: "/reports/job", token: link}).body)
	}
	if worlds["public"] != worlds["anonymous"] || strings.Contains(strings.ToLower(worlds["public"]), `"ann`) {
		t.Errorf("a firm can tell:\n%s\n%s", worlds["public"], worlds["anonymous"])
	}
	private := s.fileAbout(token(t, "ann", auth.Resident), 2, `canary","visibility":"officials`)
	olga := token(t, "olga", auth.Official)
	s.wantStatus(http.StatusBadRequest, call{method: "POST", path: "/reports/" + private.String() + "/firm", token: olga, body: fmt.Sprintf(`{"firm_id":%q}`, firm)})
	a := s.do(call{method: "GET", path: "/reports/job", token: s.send(private, firm)})
	if a.StatusCode != http.StatusOK || bytes.Contains(a.body, []byte("canary")) || bytes.Contains(a.body, []byte("description")) || !bytes.Contains(a.body, []byte("The third lamp.")) {
		t.Errorf("of a report that only the city sees: %d %s", a.StatusCode, a.body)
	}
}

// A department's officials edit its firms, and no others; a firm of another department gets
// nothing.
func TestFirmsOfDepartments(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(p *parts) { p.Desk = auth.DepartmentDesk })
	s.setDepartments()
	lights, roads := tokenOf(t, "lia", auth.Official, "lights"), tokenOf(t, "rob", auth.Official, "roads")
	put := call{method: "PUT", path: "/reports/firms?department_id=7", body: `{"firms":[` + lampu + `]}`}
	put.token = roads
	s.wantStatus(http.StatusForbidden, put)
	put.token = lights
	set, _ := ok[reportapi.Firms](s, put, http.StatusOK)
	s.wantStatus(http.StatusForbidden, call{method: "GET", path: "/reports/firms?department_id=7", token: roads})
	s.wantStatus(http.StatusBadRequest, call{method: "GET", path: "/reports/firms?department_id=99", token: lights})
	put.body = fmt.Sprintf(`{"firms":[{"id":%q,"name":"Lampu Baru","address":"office@lampu.example"}]}`, set.Firms[0].ID)
	if renamed, _ := ok[reportapi.Firms](s, put, http.StatusOK); renamed.Firms[0].ID != set.Firms[0].ID || renamed.Firms[0].Name != "Lampu Baru" {
		t.Errorf("renamed %+v", renamed)
	}
	put.body = `{"firms":[{"name":"Nyala","address":"halo@nyala.example"},{"name":"Terang","address":"halo@terang.example"}]}`
	if two, _ := ok[reportapi.Firms](s, put, http.StatusOK); len(two.Firms) != 2 || two.Firms[0].ID == two.Firms[1].ID {
		t.Errorf("two new firms %+v", two)
	}
	put.body = `{"firms":[` + lampu + `]}`
	set, _ = ok[reportapi.Firms](s, put, http.StatusOK)
	for body, pointer := range map[string]string{
		`{"name":" ","address":"a@b.example"}`: "/firms/0/name", `{"name":"x","address":"nobody"}`: "/firms/0/address", `{"name":"x","address":"X <a@b.example>"}`: "/firms/0/address",
		lampu + "," + lampu: "/firms/1/name", fmt.Sprintf(`{"id":%q,"name":"x","address":"a@b.example"}`, uuid.New()): "/firms/0/id",
	} {
		put.body = `{"firms":[` + body + `]}`
		if a := s.do(put); a.StatusCode != http.StatusBadRequest || !bytes.Contains(a.body, []byte(pointer)) {
			t.Errorf("%s: %d %s", body, a.StatusCode, a.body)
		}
	}
	road := s.fileAbout(token(t, "ann", auth.Resident), 1, "Hole")
	s.wantStatus(http.StatusBadRequest, call{method: "POST", path: "/reports/" + road.String() + "/firm", token: roads, body: fmt.Sprintf(`{"firm_id":%q}`, set.Firms[0].ID)})
}

// notices are the messages for firms, oldest first.
func (s *testServer) notices() (all []event.FirmNotice, text string) {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), `select payload::text from outbox_messages where routing_key = 'firm.notice' order by id`)
	if err != nil {
		s.t.Fatal(err)
	}
	var payload string
	_, err = pgx.ForEachRow(rows, []any{&payload}, func() error {
		m, err := event.Decode(event.FirmNoticeKey, []byte(payload))
		if err != nil {
			return err
		}
		all, text = append(all, *m.(*event.FirmNotice)), text+payload
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all, text
}

// A firm is mailed at once, reminded at half of its time, and told of the end, which officials
// read, too: each once. One that is done is not. Messages have link and address sealed, and
// nothing of the reporter.
func TestMailsToAFirm(t *testing.T) {
	t.Parallel()
	s, firm, rep, link := withFirm(t)
	run := func(sql string) {
		t.Helper()
		if _, err := s.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := scheduletest.Run(t.Context(), s.pool, postgres.NewFirms(s.db).Schedule()); err != nil {
				t.Fatal(err)
			}
		}
	}
	half := `update firm_jobs set remind_at = now() - interval '1 second' where ended_at is null`
	end := `update firm_jobs set remind_at = null, ends_at = now() where ended_at is null`
	run(half)
	run(end)
	sent, text := s.notices()
	var kinds []event.FirmNoticeKind
	for _, m := range sent {
		kinds = append(kinds, m.Kind)
		address, err := s.keys.Open(m.JobID, m.Mailbox)
		if err != nil || address != "office@lampu.example" || m.ReportTitle != "Dark lamp" || m.Text != "The third lamp." || m.ReporterID != "" {
			t.Errorf("%+v, to %q, %v", m, address, err)
		}
		if m.Kind == event.FirmEnded {
			if m.Token != "" {
				t.Error("the last mail has a link")
			}
		} else if token, err := s.keys.Open(m.JobID, m.Token); err != nil || token != link {
			t.Errorf("%s: link %q, %v", m.Kind, token, err)
		}
	}
	if want := []event.FirmNoticeKind{event.FirmAsked, event.FirmReminded, event.FirmEnded}; !slices.Equal(kinds, want) {
		t.Errorf("mails %v, want %v", kinds, want)
	}
	for _, secret := range []string{link, "lampu.example", `"ann`, "Ann", "olga", "Olga"} {
		if strings.Contains(text, secret) {
			t.Errorf("messages have %q: %s", secret, text)
		}
	}
	if n := s.count(`select count(*) from report_acts where report_id = $1 and action = 'firm_ended' and official_id = 'system'`, rep); n != 1 {
		t.Errorf("%d acts say that the link has ended, want 1", n)
	}

	done := s.send(rep, firm)
	ok[reportapi.Job](s, call{method: "POST", path: "/reports/job", token: done, body: said("done", "")}, http.StatusOK)
	run(half)
	run(end)
	private := s.fileAbout(token(t, "ann", auth.Resident), 2, `canary","visibility":"officials`)
	s.send(private, firm)
	sent, text = s.notices()
	if n := len(sent); n != 5 || strings.Contains(text, "canary") || sent[4].ReportTitle != sent[4].CategoryName || !sent[4].Private {
		t.Errorf("%d mails, want 5; the last is %+v", n, sent[n-1])
	}
}
