package permission

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// steered reports whether the configuration of the repository around dir may
// make git start programs when it only compares files: filters, drivers of
// attributes, an external diff, a file monitor. It goes by a list of what is
// harmless; everything else, and what cannot be read, counts. git reads such a
// configuration without a question if it came with an archive or a shared disk.
func steered(dir string) bool {
	for {
		for _, config := range gitConfigs(dir) {
			if !harmlessConfig(config) {
				return true
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// gitConfigs returns the configuration files of a repository in dir, if git
// takes dir for one: a checkout, a linked one, or a bare repository.
func gitConfigs(dir string) []string {
	git := filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	switch {
	case err == nil && info.IsDir():
		return []string{filepath.Join(git, "config"), filepath.Join(git, "config.worktree")}
	case err == nil:
		raw, err := os.ReadFile(git)
		target, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), "gitdir: ")
		if err != nil || !ok {
			return []string{git} // is no configuration, and counts
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		common := target
		if raw, err := os.ReadFile(filepath.Join(target, "commondir")); err == nil {
			if common = strings.TrimSpace(string(raw)); !filepath.IsAbs(common) {
				common = filepath.Join(target, common)
			}
		}
		return []string{filepath.Join(common, "config"), filepath.Join(target, "config.worktree")}
	}
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, part)); err != nil {
			return nil
		}
	}
	return []string{filepath.Join(dir, "config"), filepath.Join(dir, "config.worktree")}
}

func harmlessConfig(path string) bool {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	} else if err != nil {
		return false
	}
	defer f.Close()
	section := ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.ToLower(strings.TrimSpace(lines.Text()))
		switch {
		case line == "", line[0] == '#', line[0] == ';':
			continue
		case line[0] == '[':
			name, rest, ok := strings.Cut(line[1:], "]")
			section, _, _ = strings.Cut(name, " ")
			if !ok || strings.TrimSpace(rest) != "" { // a key behind the header is git's right, and nobody's habit
				return false
			}
		case strings.HasSuffix(line, `\`):
			return false // goes on in the next line
		}
		key, _, _ := strings.Cut(line, "=")
		if !harmlessKey(section, strings.TrimSpace(key)) {
			return false
		}
	}
	return lines.Err() == nil
}

func harmlessKey(section, key string) bool {
	switch section {
	case "branch", "remote", "user", "init", "submodule", "gc", "pull", "push", "fetch", "color", "advice", "extensions":
		return true
	case "core":
		return key[0] == '[' || slices.Contains([]string{"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode",
			"symlinks", "autocrlf", "eol", "safecrlf", "quotepath", "longpaths", "abbrev", "sparsecheckout", "sparsecheckoutcone", "untrackedcache"}, key)
	}
	return false
}
