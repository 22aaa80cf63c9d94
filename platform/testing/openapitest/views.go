package openapitest

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"
)

// CheckView makes sure that view, which makes an answer of a record, loses none of its
// fields. Each by itself has to change the answer, and all of them together have to
// fill every field of it. Those that are named in except may be in one of them alone.
func CheckView[From, To any](t *testing.T, view func(From) To, except ...string) {
	t.Helper()
	var none, all From
	from, to := reflect.TypeFor[From](), reflect.TypeFor[To]()
	for _, path := range leaves(from) {
		var one From
		fill(reflect.ValueOf(&one).Elem().FieldByIndex(path))
		fill(reflect.ValueOf(&all).Elem().FieldByIndex(path))
		name := from.FieldByIndex(path).Name
		if reflect.DeepEqual(view(one), view(none)) && !slices.Contains(except, name) {
			t.Errorf("%v.%s is missing in %v", from, name, to)
		}
	}
	answer := reflect.ValueOf(view(all))
	for _, path := range leaves(to) {
		if name := to.FieldByIndex(path).Name; answer.FieldByIndex(path).IsZero() && !slices.Contains(except, name) {
			t.Errorf("nothing fills %v.%s", to, name)
		}
	}
}

// leaves returns where the fields of a struct are, and those of structs in it.
func leaves(s reflect.Type) (paths [][]int) {
	for i := range s.NumField() {
		field := s.Field(i).Type
		if field.Kind() != reflect.Struct || field == reflect.TypeFor[time.Time]() {
			paths = append(paths, []int{i})
			continue
		}
		for _, rest := range leaves(field) {
			paths = append(paths, append([]int{i}, rest...))
		}
	}
	return paths
}

// fill sets v to something.
func fill(v reflect.Value) {
	switch v.Addr().Interface().(type) {
	case *time.Time:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return
	case *[]byte, *json.RawMessage:
		v.SetBytes([]byte(`{"name":"value"}`))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct: // to which a field points
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array: // of the bytes of an id
		v.Index(0).SetUint(1)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(time.Second)) // some are durations
	default:
		panic("fill: a field of another kind: " + v.Type().String())
	}
}
