package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// machine describes where the run was made; without that no figure means
// anything.
func machine() map[string]string {
	m := map[string]string{"cores": strconv.Itoa(runtime.NumCPU()), "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		m["processor"] = model
	}
	if memory := field("/proc/meminfo", "MemTotal"); memory != "" {
		m["memory"] = memory
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				m["revision"] = s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return m
}

// field reads the first line "name: value" of a file.
func field(file, name string) string {
	data, err := os.ReadFile(file) //nolint:gosec // one of two constants
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
