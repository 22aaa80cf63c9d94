// Command examples writes every mail in every language as HTML, in one JSON
// object by language and kind, with those of a folder of words that CITY_WORDS names.
// `make screenshots` takes pictures of them.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/rs/zerolog"

	"github.com/cityconnect/cityconnect/notification-service/internal/email"
	"github.com/cityconnect/cityconnect/notification-service/internal/wording"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "examples:", err)
		os.Exit(1)
	}
}

func run() error {
	words, err := wording.ReadFolder(os.Getenv("CITY_WORDS"), nil)
	if err != nil {
		return err
	}
	wording.Use(words, nil, zerolog.Nop())
	all := make(map[wording.Language]map[string]string)
	for _, language := range wording.Languages {
		if all[language], err = email.Examples(language); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}
