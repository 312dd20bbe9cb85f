package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe"
)

// shown is the number of lines of a file's text that are shown of a call.
const shown = 20

// Describe says in lines what a call would do, for a person who is to decide on
// it. A command is there to its last character; texts for files are cut.
func Describe(u troupe.ToolUse) []string {
	var in struct {
		Command  string `json:"command"`
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
		Old      string `json:"old_string"`
		New      string `json:"new_string"`
		Content  string `json:"content"`
		Source   string `json:"new_source"`
		All      bool   `json:"replace_all"`
		URL      string `json:"url"`
		Path     string `json:"path"`
	}
	if json.Unmarshal(u.Input, &in) != nil {
		return []string{OneLine(u.Name, 60) + " " + OneLine(string(u.Input), 2000)}
	}
	name := OneLine(u.Name, 60)
	switch u.Name {
	case "Bash":
		return begin(name, strings.Split(Clean(in.Command), "\n"))
	case "Edit":
		head := name + " " + OneLine(in.File, 400)
		if in.All {
			head += " (everywhere in it)"
		}
		return append([]string{head}, append(marked("- ", in.Old), marked("+ ", in.New)...)...)
	case "Write":
		return append([]string{fmt.Sprintf("%s %s (%s)", name, OneLine(in.File, 400), plural(len(in.Content), "byte"))}, marked("+ ", in.Content)...)
	case "NotebookEdit":
		return append([]string{name + " " + OneLine(in.Notebook, 400)}, marked("+ ", in.Source)...)
	case "Read":
		return []string{name + " " + OneLine(in.File, 400)}
	case "WebFetch":
		return []string{name + " " + OneLine(in.URL, 2000)}
	}
	return []string{name + " " + OneLine(string(u.Input), 2000)}
}

func begin(name string, lines []string) []string {
	if len(lines) == 1 {
		return []string{name + " " + lines[0]}
	}
	return append([]string{name}, lines...)
}

// marked is the beginning of a text, with a mark before each line.
func marked(mark, text string) (out []string) {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(Clean(text), "\n"), "\n")
	for i, line := range lines {
		if i == shown {
			return append(out, fmt.Sprintf("%s… %s more", mark, plural(len(lines)-shown, "line")))
		}
		if r := []rune(line); len(r) > 400 {
			line = string(r[:399]) + "…"
		}
		out = append(out, mark+line)
	}
	return out
}
