// Package config reads a service's environment into a struct.
//
// It promises that a start with a wrong environment tells every fault at
// once, names each variable, and shows what a good value looks like.
package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// fileSuffix makes the value come from a file, as secrets do in Compose and
// Kubernetes: AUTH_JWT_SECRET_FILE stands in for AUTH_JWT_SECRET.
const fileSuffix = "_FILE"

// Load fills dst, a pointer to a struct with the tags of caarlos0/env, from
// getenv, and then asks checks what is wrong with the values. A variable that
// is empty counts as missing. Every variable may be given as NAME_FILE
// instead. The tag "example" shows a good value in errors; without one the
// default is shown.
//
// Each line of an error of checks begins with a variable and a colon. What
// could not be read has its default when they look, so that they do not blame
// others for it.
func Load(dst any, getenv func(string) string, checks ...func() error) error {
	fields := make(map[string]field)
	describe(reflect.TypeOf(dst).Elem(), fields)
	environment, faults := read(fields, getenv)
	err := env.ParseWithOptions(dst, env.Options{Environment: environment})
	parsed, ok := errors.AsType[env.AggregateError](err)
	if err != nil && !ok {
		return err
	}
	for _, fault := range parsed.Errors {
		faults = append(faults, explain(fault, fields))
		if wrong, ok := errors.AsType[env.ParseError](fault); ok {
			delete(environment, fields[wrong.Name].variable)
		}
	}
	_ = env.ParseWithOptions(dst, env.Options{Environment: environment}) // what it finds wrong is among the faults
	for _, check := range checks {
		faults = append(faults, check())
	}
	return once(errors.Join(faults...))
}

// once keeps the first fault of each variable: what cannot be read, or is
// missing, has no good value either.
func once(faults error) error {
	if faults == nil {
		return nil
	}
	told := make(map[string]bool)
	var first []string
	for fault := range strings.SplitSeq(faults.Error(), "\n") {
		name, _, _ := strings.Cut(fault, ":")
		name = strings.TrimSuffix(name, fileSuffix)
		if !told[name] {
			told[name] = true
			first = append(first, fault)
		}
	}
	slices.Sort(first)
	return errors.New(strings.Join(first, "\n"))
}

// A field is what errors need to know of a struct field.
type field struct{ variable, example string }

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
			into[f.Name] = field{variable, example}
		case f.Type.Kind() == reflect.Struct:
			describe(f.Type, into)
		}
	}
}

func read(fields map[string]field, getenv func(string) string) (environment map[string]string, faults []error) {
	environment = make(map[string]string, len(fields))
	for _, f := range fields {
		value, path := getenv(f.variable), getenv(f.variable+fileSuffix)
		switch {
		case value != "" && path != "":
			faults = append(faults, fmt.Errorf("%s: set beside %s%s; want only one of them", f.variable, f.variable, fileSuffix))
		case path != "":
			data, err := os.ReadFile(path)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s%s: %w", f.variable, fileSuffix, err))
			}
			value = strings.TrimRight(string(data), "\r\n")
		}
		if value != "" {
			environment[f.variable] = value
		}
	}
	return environment, faults
}

func explain(fault error, fields map[string]field) error {
	if missing, ok := errors.AsType[env.VarIsNotSetError](fault); ok {
		for _, f := range fields {
			if f.variable == missing.Key {
				return fmt.Errorf("%s: missing%s", f.variable, f.hint())
			}
		}
	}
	if wrong, ok := errors.AsType[env.ParseError](fault); ok {
		f := fields[wrong.Name]
		return fmt.Errorf("%s: %w%s", f.variable, wrong.Err, f.hint())
	}
	return fault
}

func (f field) hint() string {
	if f.example == "" {
		return ""
	}
	return "; want something like " + f.example
}
