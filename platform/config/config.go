// Package config reads a service's environment into a struct.
//
// It promises that a start with a wrong environment reports every fault at
// once, names each variable, and shows what a good value looks like.
package config

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/caarlos0/env/v11"

	"github.com/cityconnect/cityconnect/platform/address"
	"github.com/cityconnect/cityconnect/platform/text"
)

// fileSuffix makes the value come from a file, as secrets do in Compose and
// Kubernetes: AUTH_JWT_SECRET_FILE instead of AUTH_JWT_SECRET.
const fileSuffix = "_FILE"

// A Fault is a variable that is missing or has a wrong value.
type Fault struct {
	Variable string
	// Must says what a good value looks like, in words that follow "must be". It
	// does not repeat the wrong value, which may be a secret.
	Must string
}

// String returns the fault in one line.
func (f Fault) String() string { return f.Variable + ": must be " + f.Must }

// Faults collects what a Validate method finds. Its zero value is empty.
type Faults []Fault

// Check adds a fault unless ok. What variable must be is said as in Fault.
func (f *Faults) Check(ok bool, variable, must string) {
	if !ok {
		*f = append(*f, Fault{variable, must})
	}
}

// An Error has every fault of an environment, one a line.
type Error struct{ Faults []Fault }

// Error returns the faults in the order of their variables.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// NewError returns the error that faults are, or nil if there are none. Of
// several faults of one variable it keeps the first: a value that cannot be
// read has no other faults worth telling.
func NewError(faults []Fault) error {
	told := make(map[string]bool)
	var first []Fault
	for _, fault := range faults {
		if name := strings.TrimSuffix(fault.Variable, fileSuffix); !told[name] {
			told[name] = true
			first = append(first, fault)
		}
	}
	if len(first) == 0 {
		return nil
	}
	slices.SortFunc(first, func(a, b Fault) int { return strings.Compare(a.Variable, b.Variable) })
	return &Error{first}
}

// Load fills dst, a pointer to a struct with the tags of caarlos0/env, from
// getenv, and then asks validate, which may be nil, what is wrong with the
// values. A variable that is empty counts as missing. Every variable may be
// given as NAME_FILE instead. White space and invisible characters around a value are
// no part of it; within it, line breaks are faults unless the tag "lines" is "true". A
// URL must have its password encoded. The tag "example" shows a good value in errors;
// without one the default is shown. The error is an *Error with every fault.
//
// A variable that cannot be read has its default when validate runs, so that
// other variables are not blamed for it.
func Load(dst any, getenv func(string) string, validate func() []Fault) error {
	fields := make(map[string]field)
	describe(reflect.TypeOf(dst).Elem(), fields)
	environment, faults := read(fields, getenv)
	err := env.ParseWithOptions(dst, env.Options{Environment: environment})
	parsed, ok := errors.AsType[env.AggregateError](err)
	if err != nil && !ok {
		return err
	}
	for _, err := range parsed.Errors {
		fault, ok := explain(err, fields)
		if !ok {
			return err
		}
		faults = append(faults, fault)
		delete(environment, fault.Variable)
	}
	_ = env.ParseWithOptions(dst, env.Options{Environment: environment}) // its errors are among the faults
	if validate != nil {
		faults = append(faults, validate()...)
	}
	return NewError(faults)
}

// A field is what faults tell of a struct field.
type field struct {
	variable, kind, example string
	lines                   bool // may have several, by the tag "lines"
}

// describe collects the fields of t by their names, which is how caarlos0/env
// reports a value that it could not parse.
func describe(t reflect.Type, into map[string]field) {
	for f := range t.Fields() {
		variable, _, _ := strings.Cut(f.Tag.Get("env"), ",")
		switch {
		case variable == "-":
		case variable != "":
			if other, ok := into[f.Name]; ok {
				panic("config: " + variable + " and " + other.variable + " share the field name " + f.Name)
			}
			example := f.Tag.Get("example")
			if example == "" {
				example = f.Tag.Get("envDefault")
			}
			into[f.Name] = field{variable, kindOf(f.Type), example, f.Tag.Get("lines") == "true"}
		case f.Type.Kind() == reflect.Struct:
			describe(f.Type, into)
		}
	}
}

// kindOf names what a value of type t is written as. A type with a method Must says it
// by itself.
func kindOf(t reflect.Type) string {
	if own, ok := reflect.Zero(t).Interface().(interface{ Must() string }); ok && t.Kind() != reflect.Pointer {
		return own.Must()
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration with its unit"
	case t.Kind() == reflect.Int:
		return "an integer"
	}
	return "a value"
}

func read(fields map[string]field, getenv func(string) string) (environment map[string]string, faults []Fault) {
	environment = make(map[string]string, len(fields))
	for _, f := range fields {
		value, file := getenv(f.variable), f.variable+fileSuffix
		path := strings.TrimFunc(getenv(file), decorates)
		switch {
		case value != "" && path != "":
			faults = append(faults, Fault{f.variable, "empty where " + file + " is set"})
		case path != "":
			data, err := os.ReadFile(path)
			if err != nil {
				faults = append(faults, Fault{file, "a file that can be read: " + err.Error()})
			}
			value = string(data)
		}
		if value = strings.TrimFunc(value, decorates); value == "" {
			continue
		}
		if want := f.want(value); want != "" {
			faults = append(faults, Fault{f.variable, want})
			continue
		}
		environment[f.variable] = text.CleanBlock(value)
	}
	return environment, faults
}

// decorates reports whether r comes with values that are copied, and is part of none:
// white space, line breaks, and what is invisible, such as the byte order mark of a
// file.
func decorates(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf) }

// want returns what value, which is not empty, must be to be read at all; "" if it
// can be.
func (f field) want(value string) string {
	switch {
	case text.CheckKept(value) != nil:
		return "text in UTF-8"
	case !f.lines && strings.ContainsAny(text.CleanBlock(value), "\n\t"):
		return "one line"
	case len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0]:
		return "without quotes around it: here they are a part of the value"
	case strings.HasSuffix(f.variable, "_URL") || f.variable == "PHOTO_STORE":
		return address.Fault(value)
	}
	return ""
}

// explain returns what an error of caarlos0/env says of a field; ok is false
// for one that is about the struct's tags.
func explain(err error, fields map[string]field) (fault Fault, ok bool) {
	if missing, is := errors.AsType[env.VarIsNotSetError](err); is {
		for _, f := range fields {
			if f.variable == missing.Key {
				fault = f.fault()
				fault.Must = "set to " + fault.Must
				return fault, true
			}
		}
	}
	if wrong, is := errors.AsType[env.ParseError](err); is {
		return fields[wrong.Name].fault(), true
	}
	return Fault{}, false
}

func (f field) fault() Fault {
	if f.example == "" {
		return Fault{f.variable, f.kind}
	}
	return Fault{f.variable, f.kind + ", such as " + f.example}
}
