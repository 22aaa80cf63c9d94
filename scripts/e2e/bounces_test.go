package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/cityconnect/cityconnect/platform/testing/eventually"
)

// Mails go through a mail server as cities have them, Exim, which finds out only
// later that some addresses take nothing. Its reports come back by the script of
// the manual: whoever is gone gets no more mail, and whoever's mailbox is
// full is.
func TestBouncesOfExim(t *testing.T) {
	t.Parallel()
	const readers, gone, full = 8, 3, 2
	c := prepareStack(t)
	password := strings.Repeat("s", 32)
	c.notification.env = with(c.notification.env, "MAIL_BOUNCE_SECRET", password)
	c.notification.start()
	c.report.start()
	c.awaitReady()
	outside := c.openMailServer() // the residents' mail host
	c.worker.env = with(c.worker.env, "MAIL_URL", "smtp+insecure://"+startExim(t, outside.address, c.notification.url(), password))
	c.worker.start()

	olga := c.signIn("Olga", "official")
	var addresses []string
	tell := func() {
		t.Helper()
		for _, address := range addresses {
			name, _, _ := strings.Cut(address, "@")
			move(t, olga, file(t, c.userOf(name, "resident"), "Report of "+name), "in_progress", "Seen")
		}
	}
	for i := range readers {
		name := fmt.Sprintf("reader%d", i)
		address := name + "@mail.test"
		resident := c.userOf(name, "resident")
		outside.giveAddress(resident, address)
		wanted := map[string]any{"email": []string{"report.status.updated"}}
		if err := resident.Do(t.Context(), http.MethodPut, "/me/preferences", wanted, nil); err != nil {
			t.Fatal(err)
		}
		switch {
		case i < gone:
			outside.refuse(address, &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"})
		case i < gone+full:
			outside.refuse(address, &smtp.SMTPError{Code: 552, EnhancedCode: smtp.EnhancedCode{5, 2, 2}, Message: "mailbox is full"})
		}
		addresses = append(addresses, address)
	}
	tell()
	outside.await(2*readers - gone - full) // the codes, and what was not refused
	count := func(what, sql string, want int) {
		t.Helper()
		eventually.True(t, what, func() bool {
			var n int
			return c.notificationDB.QueryRow(t.Context(), sql).Scan(&n) == nil && n == want
		})
	}
	count("Exim has accepted every mail", `select count(*) from deliveries where kind <> 'code' and state = 'done'`, readers)
	count("hard bounces have come back", `select count(*) from mail_bounces where hard and code = '5.1.1'`, gone)
	count("soft bounces have come back", `select count(*) from mail_bounces where not hard and code = '5.2.2'`, full)
	count("who is gone is not written to", `select count(*) from contacts where state = 'bounced'`, gone)
	tell()
	count("the others are written to again", `select count(*) from deliveries where kind <> 'code' and state = 'done'`, 2*readers-gone)
	count("nothing else has bounced", `select count(*) from mail_bounces`, gone+2*full)
	var figures struct{ Lanes, Bounces []any }
	if err := c.signIn("Oskar", "operator").Do(t.Context(), http.MethodGet, "/admin/email", nil, &figures); err != nil {
		t.Fatal(err)
	}
	if len(figures.Lanes) != 1 || len(figures.Bounces) != 0 {
		t.Errorf("operators see figures of fewer than 20 people: %v", figures)
	}
	t.Logf("mails=%d bounced_hard=%d bounced_soft=%d addresses_ended=%d", 2*readers-gone, gone, 2*full, gone)
}

// eximConfig has Exim take every mail and pass it on to one host, but for bounces,
// which it hands to the script.
const eximConfig = `
primary_hostname = mx.city.test
spool_directory = %[1]s/spool
log_file_path = %[1]s/log/%%slog
pid_file_path = %[1]s/spool/exim.pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = %[2]s
tls_advertise_hosts =
dsn_advertise_hosts = *
deliver_drop_privilege = true
keep_environment =
acl_smtp_rcpt = take
rfc1413_query_timeout = 0s

begin acl
take:
  accept

begin routers
bounces:
  driver = accept
  domains = bounces.city.test
  transport = bounces
outside:
  driver = manualroute
  route_list = * 127.0.0.1
  self = send
  transport = outside

begin transports
bounces:
  driver = pipe
  command = %[1]s/cityconnect-bounce
  message_prefix =
  message_suffix =
outside:
  driver = smtp
  port = %[3]s
  allow_localhost

begin retry
* * F,1h,1s
`

// startExim starts an Exim that passes mails on to another server and bounces to
// where the service is, and returns its address.
func startExim(t *testing.T, outside, service, password string) string {
	t.Helper()
	program, err := exec.LookPath("exim4")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/exim4"); err != nil {
			t.Skip("there is no Exim here: apt-get install exim4-daemon-light")
		}
	}
	dir := t.TempDir()
	// As root it changes to its own account, which has to get there.
	for _, folder := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	_, next, _ := net.SplitHostPort(outside)
	_, script, _ := strings.Cut(string(must(os.ReadFile("../../docs/mail.md"))), "   #!/bin/sh\n")
	script, _, _ = strings.Cut(script, "   ```")
	script = "#!/bin/sh\n" + strings.NewReplacer("/etc/cityconnect/bounce-secret", dir+"/secret", "https://city.example.org", service).Replace(script)
	if !strings.Contains(script, service) {
		t.Fatalf("the manual's script has no address:\n%s", script)
	}
	for name, content := range map[string]string{"exim.conf": fmt.Sprintf(eximConfig, dir, port, next), "secret": password, "cityconnect-bounce": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"spool", "log"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if account, err := user.Lookup("Debian-exim"); err == nil && os.Geteuid() == 0 {
			uid, gid := must(strconv.Atoi(account.Uid)), must(strconv.Atoi(account.Gid))
			if err := os.Chown(filepath.Join(dir, name), uid, gid); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command(program, "-C", filepath.Join(dir, "exim.conf"), "-bdf", "-q1s")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with those that deliver
	var said output
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log", "mainlog"))
			t.Logf("Exim:\n%s\n%s", said.tail(20), log)
		}
	})
	address := "127.0.0.1:" + port
	eventually.True(t, "Exim listens", func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return address
}
