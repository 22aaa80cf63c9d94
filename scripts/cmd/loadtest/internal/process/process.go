// Package process watches the processes of a stack that runs on this machine:
// the processor time and the memory that each takes.
package process

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/proc"
)

// A Sample is what one process, with those that it started, took.
type Sample struct {
	CPU time.Duration // since it started
	// Memory is resident. Of what a group shares, files count once, and memory
	// never: PostgreSQL's buffers would count once per connection otherwise.
	Memory int64 // bytes
}

// A Group is a process of the stack by its name, such as report-1.
type Group struct {
	Name    string
	pidFile string
	pid     int
}

// Stack returns the processes whose pid files lie in dir.
func Stack(dir string) []*Group {
	files, _ := filepath.Glob(filepath.Join(dir, "*.pid")) // the pattern is well formed
	groups := make([]*Group, 0, len(files))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pid")
		groups = append(groups, &Group{Name: name, pidFile: file})
	}
	return groups
}

// Self returns this process, so that a report shows what the load itself costs.
func Self() *Group { return &Group{Name: "loadtest", pid: os.Getpid()} }

// Sample reads what the group takes now; false if it does not run. The pid is
// read every time, since a replica may have been restarted.
func (g *Group) Sample() (Sample, bool) {
	pid := g.pid
	if g.pidFile != "" {
		pid, _ = proc.ReadPID(g.pidFile) // 0 is not a process of ours
	}
	cpu, ok := proc.CPU(pid)
	if !ok {
		return Sample{}, false
	}
	s := Sample{CPU: cpu, Memory: proc.Memory(pid, "RssAnon", "RssFile")}
	s.addBelow(pid)
	return s, true
}

// addBelow adds all processes below one.
func (s *Sample) addBelow(pid int) {
	for _, child := range proc.Children(pid) {
		cpu, _ := proc.CPU(child) // none if it has ended since
		s.CPU += cpu
		s.Memory += proc.Memory(child, "RssAnon")
		s.addBelow(child)
	}
}
