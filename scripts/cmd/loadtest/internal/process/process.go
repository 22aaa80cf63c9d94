// Package process watches the processes of a stack that runs on this machine:
// the processor time and the memory that each takes.
package process

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ticks is the unit of processor time in /proc: 100 a second on every Linux
// that Go runs on.
const ticks = 100

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
func (g *Group) Sample(table *Table) (Sample, bool) {
	pid := g.pid
	if g.pidFile != "" {
		pid = readPID(g.pidFile)
	}
	return table.sum(pid)
}

func readPID(file string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(data), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(line)) // 0 is none of our processes
	return pid
}

// A Table is one look at every process of the machine.
type Table struct {
	cpu      map[int]time.Duration
	children map[int][]int
}

// ReadTable looks at /proc.
func ReadTable() *Table {
	t := &Table{cpu: make(map[int]time.Duration), children: make(map[int][]int)}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if parent, cpu, ok := parseStat(string(data)); ok {
			t.cpu[pid] = cpu
			t.children[parent] = append(t.children[parent], pid)
		}
	}
	return t
}

// parseStat reads the parent and the processor time. The name before them may
// itself have blanks and brackets.
func parseStat(stat string) (parent int, cpu time.Duration, ok bool) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 15 {
		return 0, 0, false
	}
	numbers := make([]int64, 0, 5)
	for _, i := range []int{1, 11, 12, 13, 14} { // parent, own time twice, that of ended children twice
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, 0, false
		}
		numbers = append(numbers, n)
	}
	total := numbers[1] + numbers[2] + numbers[3] + numbers[4]
	return int(numbers[0]), time.Duration(total) * time.Second / ticks, true
}

// sum adds up a process and everything below it.
func (t *Table) sum(pid int) (Sample, bool) {
	cpu, ok := t.cpu[pid]
	if !ok {
		return Sample{}, false
	}
	s := Sample{CPU: cpu, Memory: memory(pid, "RssAnon", "RssFile")}
	for below := range t.descendants(pid) {
		s.CPU += t.cpu[below]
		s.Memory += memory(below, "RssAnon")
	}
	return s, true
}

// descendants yields all processes below one.
func (t *Table) descendants(pid int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, child := range t.children[pid] {
			if !yield(child) {
				return
			}
			for below := range t.descendants(child) {
				if !yield(below) {
					return
				}
			}
		}
	}
}

// memory adds up kinds of a process's resident memory.
func memory(pid int, kinds ...string) int64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	var kib int64
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains(kinds, name) {
			n, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			kib += n
		}
	}
	return kib << 10
}
