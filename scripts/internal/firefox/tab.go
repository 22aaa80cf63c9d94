package firefox

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cityconnect/cityconnect/platform/backoff"
	"github.com/cityconnect/cityconnect/scripts/internal/browser"
)

// An Action is something that a person does or waits for.
type Action struct {
	what string
	do   func(context.Context, *Tab) error
}

// Do does what a person does, one after the other, and waits for each.
func (t *Tab) Do(ctx context.Context, actions ...Action) error {
	ctx, cancel := context.WithTimeout(ctx, browser.Patience)
	defer cancel()
	for _, action := range actions {
		if err := action.do(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", action.what, err)
		}
	}
	return nil
}

// Go goes to a URL.
func Go(url string) Action {
	return Action{"go to " + url, func(ctx context.Context, t *Tab) error {
		return t.conn.call(ctx, "browsingContext.navigate", object{"context": t.context, "url": url, "wait": "complete"}, nil)
	}}
}

// See waits until an element of a kind is visible whose text contains text.
func See(selector, text string) Action { return Until(browser.Find(selector, text)) }

// Until waits until a JavaScript expression is true, also across a reload.
func Until(expression string) Action {
	return Action{"wait for " + expression, func(ctx context.Context, t *Tab) error {
		for poll := new(backoff.Poll); ; {
			yes, err := Ask[bool](ctx, t, "Boolean("+expression+")")
			if err == nil && yes {
				return nil
			}
			select { // an error says that the page is gone, or not there yet
			case <-ctx.Done():
				return errors.Join(ctx.Err(), err)
			case <-poll.Next():
			}
		}
	}}
}

// Click clicks on the element of a kind (a CSS selector) that is called name, and
// again if something that has just come above it was hit instead, as [browser.Click]
// does.
func Click(selector, name string) Action {
	return Action{fmt.Sprintf("click %s %q", selector, name), func(ctx context.Context, t *Tab) error {
		element := browser.Find(selector, name)
		for again := true; again; {
			if err := Until(browser.Aim(element)).do(ctx, t); err != nil {
				return err
			}
			err := t.press(ctx, element)
			if err != nil {
				return err
			}
			again, err = Ask[bool](ctx, t, browser.Missed)
			if err != nil {
				return ctx.Err() // what was clicked on leads to another page
			}
		}
		return nil
	}}
}

// press scrolls to an element and presses the mouse on it.
func (t *Tab) press(ctx context.Context, element string) error {
	node, err := t.node(ctx, fmt.Sprintf("((e) => { e.scrollIntoView({ block: 'center', behavior: 'instant' }); return e; })(%s)", element))
	if err != nil {
		return err
	}
	return t.perform(ctx, object{
		"type": "pointer", "id": "mouse", "actions": []object{
			{"type": "pointerMove", "x": 0, "y": 0, "origin": object{"type": "element", "element": node}},
			{"type": "pointerDown", "button": 0},
			{"type": "pointerUp", "button": 0},
		},
	})
}

// Fill types text into the field that is labelled so, in place of what is there.
func Fill(label, text string) Action {
	control := "(" + browser.Find("label", label) + ")?.control"
	return Action{fmt.Sprintf("fill %q", label), func(ctx context.Context, t *Tab) error {
		if err := Until(fmt.Sprintf("((e) => e && (e.focus(), e.select(), document.activeElement === e))(%s)", control)).do(ctx, t); err != nil {
			return err
		}
		var keys []object
		for _, letter := range text {
			keys = append(keys, object{"type": "keyDown", "value": string(letter)}, object{"type": "keyUp", "value": string(letter)})
		}
		return t.perform(ctx, object{"type": "key", "id": "keyboard", "actions": keys})
	}}
}

// Files chooses files in the input of a selector, as the browser's own dialogue does.
func Files(selector string, paths ...string) Action {
	return Action{"choose files in " + selector, func(ctx context.Context, t *Tab) error {
		node, err := t.node(ctx, fmt.Sprintf("document.querySelector(%q)", selector))
		if err != nil {
			return err
		}
		return t.conn.call(ctx, "input.setFiles", object{"context": t.context, "element": node, "files": paths}, nil)
	}}
}

// perform does what one device of the reader's does.
func (t *Tab) perform(ctx context.Context, device object) error {
	return t.conn.call(ctx, "input.performActions", object{"context": t.context, "actions": []object{device}}, nil)
}

// Ask evaluates JavaScript in the page.
func Ask[T any](ctx context.Context, t *Tab, expression string) (v T, err error) {
	result, err := t.evaluate(ctx, fmt.Sprintf("(async () => JSON.stringify((await (%s)) ?? null))()", expression))
	if err != nil {
		return v, fmt.Errorf("ask %s: %w", expression, err)
	}
	if err := json.Unmarshal([]byte(result.Value), &v); err != nil {
		return v, fmt.Errorf("ask %s: %w", expression, err)
	}
	return v, nil
}

// node returns a reference to the element that JavaScript returns.
func (t *Tab) node(ctx context.Context, expression string) (object, error) {
	result, err := t.evaluate(ctx, expression)
	if err == nil && result.SharedID == "" {
		err = errors.New("there is no such element")
	}
	return object{"sharedId": result.SharedID}, err
}

// An evaluated is a string or an element.
type evaluated struct {
	Value    text   `json:"value"`
	SharedID string `json:"sharedId"`
}

// A text is a JSON string, or empty where there is anything else.
type text string

// UnmarshalJSON reads a string.
func (s *text) UnmarshalJSON(data []byte) error {
	var read string
	if json.Unmarshal(data, &read) == nil {
		*s = text(read)
	}
	return nil
}

func (t *Tab) evaluate(ctx context.Context, expression string) (evaluated, error) {
	var result struct {
		Result           evaluated `json:"result"`
		ExceptionDetails *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	err := t.conn.call(ctx, "script.evaluate", object{
		"target": object{"context": t.context}, "expression": expression, "awaitPromise": true,
	}, &result)
	if err == nil && result.ExceptionDetails != nil {
		err = errors.New(result.ExceptionDetails.Text)
	}
	return result.Result, err
}

// Picture returns what is to be seen, as PNG.
func (t *Tab) Picture(ctx context.Context) ([]byte, error) {
	var taken struct{ Data string }
	if err := t.conn.call(ctx, "browsingContext.captureScreenshot", object{"context": t.context}, &taken); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(taken.Data)
}

// Faults returns what went wrong in the tab's pages since it was opened: errors of
// scripts and those on the console, and what the pages' policy forbade.
func (t *Tab) Faults(ctx context.Context) ([]string, error) {
	if _, err := t.evaluate(ctx, "0"); err != nil { // its answer comes after all earlier events
		return nil, err
	}
	var faults []string
	for _, event := range t.conn.events {
		var fault struct {
			Level, Text string // of log.entryAdded
			Data        struct{ Value text }
		}
		if err := json.Unmarshal(event.Params, &fault); err != nil {
			return nil, fmt.Errorf("read %s: %w", event.Method, err)
		}
		switch {
		case event.Method == "script.message":
			faults = append(faults, string(fault.Data.Value))
		case fault.Level == "error":
			faults = append(faults, fault.Text)
		}
	}
	return faults, nil
}
