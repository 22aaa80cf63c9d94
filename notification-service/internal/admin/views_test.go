package admin

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"
)

// Between the database and an answer, no field gets lost. The compiler does not
// see that: a field that a view leaves out has its zero value, which keeps to
// the document.
func TestViewsAreWhole(t *testing.T) {
	t.Parallel()
	checkView(t, letterOf, "Attempts") // only a letter alone has them
	checkView(t, attemptOf)
	checkView(t, statOf)
	checkView(t, groupOf)
	checkView(t, changeOf)
	checkView(t, auditOf)
	checkView(t, replayOf)
	checkView(t, poolOf, "Copies") // where it is comes from the broker
	checkView(t, copiesOf)
	checkView(t, findingOf)
}

// checkView fills the fields of what view shows. Each by itself has to change
// the answer, and all of them together have to fill every field of it, except
// those that are added elsewhere.
func checkView[From, To any](t *testing.T, view func(From) To, elsewhere ...string) {
	t.Helper()
	var none, all From
	from, to := reflect.TypeFor[From](), reflect.TypeFor[To]()
	for _, path := range leaves(from) {
		var one From
		fill(reflect.ValueOf(&one).Elem().FieldByIndex(path))
		fill(reflect.ValueOf(&all).Elem().FieldByIndex(path))
		if reflect.DeepEqual(view(one), view(none)) {
			t.Errorf("%v.%s is missing in %v", from, from.FieldByIndex(path).Name, to)
		}
	}
	answer := reflect.ValueOf(view(all))
	for _, path := range leaves(to) {
		if name := to.FieldByIndex(path).Name; answer.FieldByIndex(path).IsZero() && !slices.Contains(elsewhere, name) {
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
