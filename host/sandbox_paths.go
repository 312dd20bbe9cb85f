package host

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/proc"
)

// A cache is where a program keeps what it has fetched or built before. Without
// it most would not work, or would do all anew for each command.
type cache struct {
	program  string // that has it
	variable string // that names its directory; "" is none
	path     string // else, below the home directory
}

// allCaches are the caches that commands may write to.
var allCaches = []cache{
	{"go", "GOCACHE", ".cache/go-build"}, {"go", "GOMODCACHE", "go/pkg/mod"}, {"go", "", "go/pkg/sumdb"},
	{"npm", "npm_config_cache", ".npm"}, {"yarn", "YARN_CACHE_FOLDER", ".cache/yarn"}, {"pnpm", "", ".local/share/pnpm/store"}, {"pnpm", "", ".cache/pnpm"},
	{"bun", "BUN_INSTALL_CACHE_DIR", ".bun/install/cache"}, {"deno", "DENO_DIR", ".cache/deno"},
	{"pip", "PIP_CACHE_DIR", ".cache/pip"}, {"uv", "UV_CACHE_DIR", ".cache/uv"}, {"poetry", "POETRY_CACHE_DIR", ".cache/pypoetry"},
	{"cargo", "", ".cargo/registry"}, {"cargo", "", ".cargo/git"}, {"ccache", "CCACHE_DIR", ".cache/ccache"}, {"sccache", "SCCACHE_DIR", ".cache/sccache"},
	{"mvn", "", ".m2/repository"}, {"gradle", "", ".gradle/caches"}, {"gradle", "", ".gradle/daemon"}, {"gradle", "", ".gradle/wrapper"}, {"gradle", "", ".gradle/native"},
	{"composer", "COMPOSER_CACHE_DIR", ".cache/composer"},
}

// cargoFiles are single files beside cargo's caches: its locks.
var cargoFiles = []string{".package-cache", ".package-cache-mutate", ".global-cache"}

// caches returns the caches of the programs in env. Those of a program that is
// there are made if they are missing, as the program would do: a sandbox can
// only let be written what is there.
func caches(env []string, home string) (dirs []string) {
	for _, c := range allCaches {
		dir := c.dir(env, home)
		if dir == "" {
			continue
		}
		if _, err := os.Stat(dir); err != nil {
			if _, err := proc.Look(c.program, env); err != nil {
				continue
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				continue // the program will say so
			}
		}
		dirs = append(dirs, realPath(dir))
	}
	for _, name := range cargoFiles {
		dirs = append(dirs, realPath(filepath.Join(or(variable(env, "CARGO_HOME"), filepath.Join(home, ".cargo")), name)))
	}
	return dirs
}

// dir is the directory of c, "" if it cannot be told.
func (c cache) dir(env []string, home string) string {
	if c.variable != "" {
		if dir := variable(env, c.variable); dir != "" {
			if !filepath.IsAbs(dir) {
				return "" // "off", or from where a program starts
			}
			return dir
		}
	}
	for _, moved := range [][2]string{{".cache/", "XDG_CACHE_HOME"}, {".cargo/", "CARGO_HOME"}, {".gradle/", "GRADLE_USER_HOME"}, {"go/", "GOPATH"}} {
		if rest, ok := strings.CutPrefix(c.path, moved[0]); ok && filepath.IsAbs(variable(env, moved[1])) {
			first, _, _ := strings.Cut(variable(env, moved[1]), string(filepath.ListSeparator))
			return filepath.Join(first, rest)
		}
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, c.path)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// others are the sockets by which programs have others do something for them:
// the user's own services, containers, terminals. Who may speak to them is not
// confined.
func others(env []string) (paths []string) {
	uid := strconv.Itoa(os.Getuid())
	for _, p := range []string{or(variable(env, "XDG_RUNTIME_DIR"), "/run/user/"+uid), "/run/dbus", "/run/docker.sock", "/run/podman", "/run/containerd",
		"/run/snapd.socket", "/run/systemd/private", filepath.Join(or(variable(env, "TMUX_TMPDIR"), "/tmp"), "tmux-"+uid)} {
		if filepath.IsAbs(p) {
			paths = append(paths, realPath(p))
		}
	}
	return paths
}

// settingsDirs are where the settings of a project lie.
var settingsDirs = []string{".troupe", ".claude"}

// guarded are the files in writable directories by which a command would change
// what later commands may do, or what runs outside: settings, and what git runs.
func guarded(dirs []string) (paths []string) {
	for _, dir := range dirs {
		for _, name := range append([]string{".mcp.json"}, settingsDirs...) {
			paths = append(paths, realPath(filepath.Join(dir, name)))
		}
		if link := filepath.Join(dir, ".git"); isFile(link) {
			paths = append(paths, link)
		}
		own := gitDirs(dir)
		for _, git := range slices.Concat(own, nested(dir), modules(own)) {
			for _, name := range []string{"hooks", "config", "config.worktree"} {
				paths = append(paths, realPath(filepath.Join(git, name)))
			}
		}
		if isGit(dir) { // a repository's own directory, beside the place
			paths = append(paths, realPath(filepath.Join(dir, "hooks")), realPath(filepath.Join(dir, "config")))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// mostNested is how many entries of a directory are looked at for repositories:
// that is done before each command.
const mostNested = 1000

// nested returns git's directories of the repositories that lie directly in dir.
// Those further down are not looked for: it would be a walk through all files.
func nested(dir string) (out []string) {
	for _, name := range entries(dir) {
		if name == ".git" {
			continue
		}
		below := filepath.Join(dir, name)
		if _, err := os.Lstat(filepath.Join(below, ".git")); err == nil {
			out = append(out, gitDirs(below)...)
		}
	}
	return out
}

// modules returns git's directories of the submodules of a repository, whose own
// are gits.
func modules(gits []string) (out []string) {
	for _, git := range gits {
		for _, name := range entries(filepath.Join(git, "modules")) {
			if module := filepath.Join(git, "modules", name); isGit(module) {
				out = append(out, realPath(module))
			}
		}
	}
	return out
}

// entries are the names in a directory, not too many of them.
func entries(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(mostNested) // what cannot be read, commands cannot change
	return names
}

// gitDirs returns the directories of git for a working directory: that of the
// repository, and that of the worktree if it is another. A file .git may name any
// directory; only one that belongs to a repository, as git has laid it out, is
// believed.
func gitDirs(dir string) []string {
	for ; ; dir = filepath.Dir(dir) {
		link := filepath.Join(dir, ".git")
		switch {
		case isGit(link):
			return []string{realPath(link)}
		case isFile(link):
			return linkedGit(link)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// linkedGit returns the directories that a file .git leads to: of a worktree,
// or of a submodule.
func linkedGit(link string) []string {
	data, err := os.ReadFile(link)
	to, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if err != nil || !ok {
		return nil
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(link), to)
	}
	own, err := permission.RealPath(to)
	if err != nil {
		return nil
	}
	common := filepath.Dir(filepath.Dir(own))
	back, _ := os.ReadFile(filepath.Join(own, "gitdir"))
	switch {
	case filepath.Base(filepath.Dir(own)) == "worktrees" && isGit(common) && realPath(strings.TrimSpace(string(back))) == realPath(link):
		return []string{common, own}
	case strings.Contains(own, string(filepath.Separator)+filepath.Join(".git", "modules")+string(filepath.Separator)) && isGit(own):
		return []string{own}
	}
	return nil
}

// isGit reports whether path is a directory of git.
func isGit(path string) bool {
	for _, name := range []string{"objects", "refs"} {
		if st, err := os.Stat(filepath.Join(path, name)); err != nil || !st.IsDir() {
			return false
		}
	}
	return isFile(filepath.Join(path, "HEAD"))
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
