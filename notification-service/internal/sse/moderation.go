package sse

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/cityconnect/cityconnect/notification-service/internal/notification"
)

// maxModerations is how many reports a hub remembers as moderated: events from before
// a moderation arrive within seconds.
const maxModerations = 256

// moderations are the reports that officials have moderated recently: events older
// than the moderation must not be sent, however late they arrive.
type moderations struct {
	mu       sync.RWMutex
	versions map[uuid.UUID]int64
	order    []uuid.UUID // the oldest first
	texts    [][]byte    // of those
}

func (m *moderations) add(list []notification.Moderation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.versions == nil {
		m.versions = make(map[uuid.UUID]int64)
	}
	for _, report := range list {
		if _, known := m.versions[report.ReportID]; !known {
			m.order, m.texts = append(m.order, report.ReportID), append(m.texts, []byte(report.ReportID.String()))
		}
		m.versions[report.ReportID] = max(m.versions[report.ReportID], report.Version)
	}
	for len(m.order) > maxModerations {
		delete(m.versions, m.order[0])
		m.order, m.texts = m.order[1:], m.texts[1:]
	}
}

// passed reports whether the words of d are of a version before the report was
// moderated.
func (m *moderations) passed(d notification.Data) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return max(d.ReportVersion, d.WordsVersion) < m.versions[d.ReportID]
}

// passedIn does the same with the data of a notification, which is hardly ever
// about one of these reports.
func (m *moderations) passedIn(data json.RawMessage) bool {
	if !m.mentioned(data) {
		return false
	}
	var d notification.Data
	return json.Unmarshal(data, &d) == nil && m.passed(d)
}

func (m *moderations) mentioned(data json.RawMessage) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.ContainsFunc(m.texts, func(id []byte) bool { return bytes.Contains(data, id) })
}

// forget drops the cached frames of all topics: few reports are moderated, and to look
// for the frames about one would take longer.
func (h *Hub) forget() {
	for _, t := range h.allTopics() {
		h.resync(t, t.forget())
	}
}
