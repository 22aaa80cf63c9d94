package reference

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/oasdiff/yaml3"
)

// An ordered map keeps the order of its document, in which readers know it.
type ordered[T any] []entry[T]

type entry[T any] struct {
	key   string
	value T
}

// UnmarshalYAML reads a mapping.
func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		e := entry[T]{key: node.Content[i].Value}
		if err := node.Content[i+1].Decode(&e.value); err != nil {
			return fmt.Errorf("%s: %w", e.key, err)
		}
		*o = append(*o, e)
	}
	return nil
}

func (o ordered[T]) get(key string) (value T) {
	for _, e := range o {
		if e.key == key {
			return e.value
		}
	}
	return value
}

// words are one text or a list of them.
type words []string

// UnmarshalYAML reads either.
func (w *words) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*w = words{node.Value}
		return nil
	}
	return node.Decode((*[]string)(w))
}

// A value is one of JSON, as the document writes it.
type value struct{ any }

// UnmarshalYAML reads any value.
func (v *value) UnmarshalYAML(node *yaml.Node) error { return node.Decode(&v.any) }

// String returns a text as it is, and other values as JSON.
func (v value) String() string {
	if text, ok := v.any.(string); ok {
		return text
	}
	return v.json("")
}

func (v value) json(indent string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v.any); err != nil {
		panic(err) // it was read from YAML
	}
	return strings.TrimSpace(out.String())
}

// A schema is what the references say of one.
type schema struct {
	Ref         string           `yaml:"$ref"`
	Types       words            `yaml:"type"`
	Description string           `yaml:"description"`
	Properties  ordered[*schema] `yaml:"properties"`
	Required    []string         `yaml:"required"`
	Items       *schema          `yaml:"items"`
	OneOf       []*schema        `yaml:"oneOf"`
	AnyOf       []*schema        `yaml:"anyOf"`
	AllOf       []*schema        `yaml:"allOf"`
	Const       *value           `yaml:"const"`
	Enum        []value          `yaml:"enum"`
	Format      string           `yaml:"format"`
	Minimum     string           `yaml:"minimum"`
	Maximum     string           `yaml:"maximum"`
	MinLength   string           `yaml:"minLength"`
	MaxLength   string           `yaml:"maxLength"`
	MinItems    string           `yaml:"minItems"`
	MaxItems    string           `yaml:"maxItems"`
	Pattern     string           `yaml:"pattern"`
	Default     *value           `yaml:"default"`
	Examples    []value          `yaml:"examples"`
}

// content is what a body may be, by media type.
type content = ordered[struct {
	Schema *schema `yaml:"schema"`
}]

type parameter struct {
	Ref         string  `yaml:"$ref"`
	Name        string  `yaml:"name"`
	In          string  `yaml:"in"`
	Required    bool    `yaml:"required"`
	Description string  `yaml:"description"`
	Schema      *schema `yaml:"schema"`
}

type response struct {
	Ref         string            `yaml:"$ref"`
	Description string            `yaml:"description"`
	Content     content           `yaml:"content"`
	Headers     ordered[struct{}] `yaml:"headers"`
}

type operation struct {
	Tags        []string               `yaml:"tags"`
	Summary     string                 `yaml:"summary"`
	Description string                 `yaml:"description"`
	Roles       []string               `yaml:"x-roles"`
	Security    *[]map[string][]string `yaml:"security"`
	Parameters  []parameter            `yaml:"parameters"`
	Body        *response              `yaml:"requestBody"`
	Responses   ordered[response]      `yaml:"responses"`
}

type pathItem struct {
	Parameters []parameter `yaml:"parameters"`
	Get        *operation  `yaml:"get"`
	Post       *operation  `yaml:"post"`
	Put        *operation  `yaml:"put"`
	Patch      *operation  `yaml:"patch"`
	Delete     *operation  `yaml:"delete"`
}

type info struct {
	Title       string `yaml:"title"`
	Version     string `yaml:"version"`
	Description string `yaml:"description"`
}

// An api is an OpenAPI document.
type api struct {
	Info     info                   `yaml:"info"`
	Security *[]map[string][]string `yaml:"security"`
	Tags     []struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	} `yaml:"tags"`
	Paths      ordered[pathItem] `yaml:"paths"`
	Webhooks   ordered[pathItem] `yaml:"webhooks"`
	Components struct {
		Schemas    ordered[*schema]   `yaml:"schemas"`
		Parameters ordered[parameter] `yaml:"parameters"`
		Headers    ordered[parameter] `yaml:"headers"`
		Responses  ordered[response]  `yaml:"responses"`
	} `yaml:"components"`
}

// A channel is a routing key or a queue.
type channel struct {
	Address     string `yaml:"address"`
	Description string `yaml:"description"`
	Messages    ordered[struct {
		Ref string `yaml:"$ref"`
	}] `yaml:"messages"`
	Bindings struct {
		AMQP struct {
			Is       string `yaml:"is"`
			Exchange struct {
				Name string `yaml:"name"`
			} `yaml:"exchange"`
		} `yaml:"amqp"`
	} `yaml:"bindings"`
}

// A messaging is an AsyncAPI document.
type messaging struct {
	Info       info             `yaml:"info"`
	Channels   ordered[channel] `yaml:"channels"`
	Components struct {
		Messages ordered[message] `yaml:"messages"`
		Schemas  ordered[*schema] `yaml:"schemas"`
	} `yaml:"components"`
}

type message struct {
	Name    string `yaml:"name"`
	Payload struct {
		Schema struct {
			Ref string `yaml:"$ref"`
		} `yaml:"schema"`
	} `yaml:"payload"`
}
