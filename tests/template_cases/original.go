// Renders templates with text/template: a case a line on stdin, its outcome a line on stdout.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"text/template"
)

type Case struct {
	Template string
	Data     json.RawMessage
	Lenient  bool
}

// Numbers become integers where they are, as in the data of a case.
func plain(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		float, _ := value.Float64()
		return float
	case []any:
		for at, item := range value {
			value[at] = plain(item)
		}
	case map[string]any:
		for key, item := range value {
			value[key] = plain(item)
		}
	}
	return value
}

func render(of Case) (string, error) {
	var data any
	decoder := json.NewDecoder(strings.NewReader(string(of.Data)))
	decoder.UseNumber()
	if err := decoder.Decode(&data); err != nil {
		return "", err
	}
	made := template.New("case")
	if !of.Lenient {
		made = made.Option("missingkey=error")
	}
	made, err := made.Parse(of.Template)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = made.Execute(&out, plain(data))
	return out.String(), err
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64*1024*1024)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var of Case
		answer := map[string]string{}
		if err := json.Unmarshal(lines.Bytes(), &of); err != nil {
			answer["error"] = err.Error()
		} else if gives, err := render(of); err != nil {
			answer["error"] = err.Error()
		} else {
			answer["gives"] = gives
		}
		answers.Encode(answer)
	}
}
