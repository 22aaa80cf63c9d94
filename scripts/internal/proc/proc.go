// Package proc reads what Linux tells of processes in /proc.
package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ticks is the unit of processor time: 100 a second on every Linux that Go runs
// on.
const ticks = 100

// Alive reports whether the process runs: one that has ended and that nobody has
// waited for does not.
func Alive(pid int) bool {
	fields := stat(pid)
	return len(fields) > 0 && fields[0] != "Z"
}

// Stopped reports whether the process is stopped by a signal, as SIGSTOP.
func Stopped(pid int) bool {
	fields := stat(pid)
	return len(fields) > 0 && fields[0] == "T"
}

// CPU returns the processor time that a process and those of its children that
// have ended have used; false if it does not run.
func CPU(pid int) (used time.Duration, ok bool) { return processorTime(stat(pid)) }

func processorTime(fields []string) (used time.Duration, ok bool) {
	if len(fields) < 15 {
		return 0, false
	}
	for _, field := range fields[11:15] { // own time twice, that of children twice
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, false
		}
		used += time.Duration(n) * time.Second / ticks
	}
	return used, true
}

func stat(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // one that has ended has none
	return statFields(string(text))
}

// statFields returns the fields of /proc/PID/stat from the third on, the state. The
// name before it may itself have blanks and brackets.
func statFields(text string) []string {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return nil
	}
	return strings.Fields(text[end+1:])
}

// Memory returns the sum of figures of a process's memory in bytes, such as VmRSS
// (what it has now), VmHWM (the most that it had) or RssAnon; 0 if it does not run.
func Memory(pid int, figures ...string) (bytes int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // one that has ended has none
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains(figures, name) {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64) // the kernel writes a number
			bytes += kib << 10
		}
	}
	return bytes
}

// Children returns the processes that a process has started and that run.
func Children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread that has ended has none
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// ReadPID returns the process in the first line of a pid file.
func ReadPID(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("find a process: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0, fmt.Errorf("pid file %s: %w", file, err)
	}
	return pid, nil
}
