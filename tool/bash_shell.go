package tool

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/troupe-sh/troupe/proc"
)

// shell returns the shell to run commands in and its arguments before the
// command.
func (b *Bash) shell() (string, []string, error) {
	shell := b.Shell
	var err error
	switch {
	case shell != "":
	case runtime.GOOS == "windows":
		shell, err = gitBash(b.Env, isFile)
	default:
		if shell, err = proc.Look("bash", b.Env); err != nil {
			shell, err = proc.Look("sh", b.Env)
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("find a shell: %w; install bash or set the path of one", err)
	}
	name := strings.TrimSuffix(path.Base(strings.ReplaceAll(shell, `\`, "/")), ".exe")
	if name == "bash" {
		return shell, []string{"--noprofile", "--norc", "-c"}, nil
	}
	return shell, []string{"-c"}, nil
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// gitBash finds the bash of Git for Windows: in PATH, beside the git in PATH,
// or where it is usually installed. The bash.exe in the directory of Windows
// itself is another thing: it starts a virtual machine or does nothing.
func gitBash(env []string, isFile func(path string) bool) (string, error) {
	get := func(name string) string {
		value := ""
		for _, entry := range env {
			if key, v, ok := strings.Cut(entry, "="); ok && strings.EqualFold(key, name) {
				value = v
			}
		}
		return value
	}
	var candidates []string
	for dir := range strings.SplitSeq(get("PATH"), ";") {
		dir = strings.TrimRight(strings.Trim(dir, `"`), `\/`)
		lower := strings.ToLower(strings.ReplaceAll(dir, "/", `\`)) + `\`
		if len(dir) < 3 || dir[1] != ':' || strings.Contains(lower, `\system32\`) || strings.Contains(lower, `\sysnative\`) || strings.Contains(lower, `\windowsapps\`) {
			continue // not absolute, or Windows' own
		}
		candidates = append(candidates, dir+`\bash.exe`)
		if isFile(dir + `\git.exe`) { // in cmd or bin of the installation
			if i := strings.LastIndexAny(dir, `\/`); i > 0 {
				candidates = append(candidates, dir[:i]+`\bin\bash.exe`)
			}
		}
	}
	for _, root := range []string{"ProgramFiles", "ProgramFiles(x86)"} {
		if dir := get(root); dir != "" {
			candidates = append(candidates, dir+`\Git\bin\bash.exe`)
		}
	}
	if dir := get("LOCALAPPDATA"); dir != "" {
		candidates = append(candidates, dir+`\Programs\Git\bin\bash.exe`)
	}
	for _, c := range candidates {
		if isFile(c) {
			return c, nil
		}
	}
	return "", errors.New("there is no Git Bash; install Git for Windows (https://gitforwindows.org)")
}
