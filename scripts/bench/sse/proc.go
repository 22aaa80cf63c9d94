package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is the unit of procfs.
const ticksPerSecond = 100

// pids returns the process and its children, such as nginx's workers.
func (p *process) pids() []string {
	pids := []string{strconv.Itoa(p.cmd.Process.Pid)}
	lists, _ := filepath.Glob("/proc/" + pids[0] + "/task/*/children") // the pattern is valid
	for _, path := range lists {
		children, _ := os.ReadFile(path) // a thread that has ended has none
		pids = append(pids, strings.Fields(string(children))...)
	}
	return pids
}

// memory returns the resident memory of the server in KB.
func (p *process) memory() int {
	sum := 0
	for _, pid := range p.pids() {
		status, _ := os.ReadFile("/proc/" + pid + "/status") // one that has ended has none
		for line := range bytes.Lines(status) {
			if value, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
				kb, _ := strconv.Atoi(strings.Fields(string(value))[0]) // the kernel writes a number
				sum += kb
			}
		}
	}
	return sum
}

// cpu returns the processor time that the server has used.
func (p *process) cpu() time.Duration {
	ticks := 0
	for _, pid := range p.pids() {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat") // one that has ended has none
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 {
			user, _ := strconv.Atoi(fields[11]) // the kernel writes numbers
			system, _ := strconv.Atoi(fields[12])
			ticks += user + system
		}
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}

// collect has our own server give back what is garbage. The others have no
// such door, and are weighed as they are.
func (p *process) collect() {
	if strings.HasPrefix(p.name, "CityConnect") {
		if res, err := publisher.Get("http://" + p.addr + "/gc"); err == nil {
			_ = res.Body.Close() // it is empty
		}
	}
}

// untilClosed returns how long it took until the server let go of conn, or 0
// if it did not within the limit. A socket that the server closed while data
// waited in it belongs to no process any more: its inode is 0.
func (p *process) untilClosed(conn net.Conn, limit time.Duration) time.Duration {
	began := time.Now()
	own, server := hexPort(conn.LocalAddr()), hexPort(conn.RemoteAddr())
	for time.Since(began) < limit {
		if !held(server, own) {
			return time.Since(began)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return 0
}

func hexPort(a net.Addr) string { return fmt.Sprintf(":%04X", a.(*net.TCPAddr).Port) }

// held tells whether a process has the socket between the two ports.
func held(local, remote string) bool {
	table, _ := os.ReadFile("/proc/net/tcp") // always there on Linux
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > 9 && strings.HasSuffix(fields[1], local) && strings.HasSuffix(fields[2], remote) {
			return fields[9] != "0"
		}
	}
	return false
}
