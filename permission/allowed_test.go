package permission

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// Commands that only read run without any rule, in the narrowest mode too.
func TestReadOnlyCommands(t *testing.T) {
	place := workspace(t)
	for _, command := range []string{
		"ls", "ls -la", "ls src", "ls -la src/ main.go", "ls *.go", "ls src/*.go", "cat main.go", "cat ./src/../main.go", "cat *.md", "head -n 5 README.md",
		"head -5 README.md", "tail -n+2 main.go", "wc -l src/a.go src/b.go", "wc -l src/{a,b}.go", "pwd", "echo hello world", `echo "$HOME" '$(rm a)'`,
		"grep -rn 'func main' src", "grep -n TODO main.go | head -20", `grep -E '^/api/' main.go`, "rg --type go 'x' src", "find . -name '*.go' -type f", "find src -newer main.go",
		"git status", "git status --short", "git log --oneline -5", "git diff HEAD~1 -- src", "git show HEAD", "git show --stat HEAD", "git branch --list", "git branch -a",
		"git branch --show-current", "git rev-parse HEAD", "git blame main.go", "git --no-pager log -n 3", "go version", "go env GOMOD", "which go", "command -v go",
		"stat main.go", "file main.go", "du -sh src", "df -h", "date", "date +%Y-%m-%d", "date -d yesterday +%F", "sort main.go", "sort -u -k2 main.go", "uniq -c main.go",
		"cut -d/ -f1 main.go", "cut -d: -f1 main.go", "tr a-z A-Z < main.go", "diff main.go src/a.go", "diff <(sort main.go) <(sort src/a.go)", "jq .name README.md",
		"basename /usr/lib/x", "dirname /a/b", "realpath main.go", "test -f main.go && echo yes", "[ -d src ] || echo no", "[[ -f main.go ]] && cat main.go", "true", "false",
		"cd src && ls", "cd src; cat a.go", "(cd src && pwd)", "cd . && git status", "cat main.go 2>/dev/null", "ls -la 2>&1 | head", "ls >/dev/null 2>&1", "ls &> /dev/null",
		"sed -n '1,20p' main.go", "sed -n '/func/p' main.go", "sed 's/a/b/g' main.go", "cat <<'EOF'\n$(touch pwned)\nEOF", "cat <<EOF\nplain\nEOF", "for f in a b; do echo $f; done",
		"if [ -f main.go ]; then cat main.go; else echo none; fi", "case x in x) ls;; esac", "while false; do ls; done", "x=$(pwd); echo $x", "time ls", "timeout 5 ls src",
		"timeout -k 1 5s cat main.go", "nice -n 5 ls", "nohup ls", "LC_ALL=C sort main.go", "TZ=UTC date", "env LANG=C ls", "bash -c 'ls src'", "sh -c \"cat main.go | wc -l\"",
		"! grep -q x main.go", "ls # a comment", "{ ls; pwd; }", "echo $((1 + 2))", `echo "a\"b"`, `printf '%s\n' a b`, "cat ''main.go", `c\at main.go`, "ls -- src", "cat here/main.go", "sleep 1",
		"git diff --stat main...HEAD", "git log --since='2 weeks ago' --author=a --pretty=format:'%h %s'", "cat .env.example", "cat /dev/null main.go",
	} {
		for _, mode := range []Mode{Default, Plan, DontAsk} {
			if v := policy(t, mode, "deny Bash(rm *)").Decide(shell(place, command)); v.Effect != troupe.Allow {
				t.Errorf("%s: %q: %s (%s: %s)", mode, command, v.Effect, v.By, v.Reason)
			}
		}
	}
}

// Commands that users write rules for run under these rules.
func TestCommandsUnderRules(t *testing.T) {
	place := workspace(t)
	rules := []string{
		"allow Bash(git *)", "allow Bash(go test *)", "allow Bash(go build:*)", "allow Bash(npm run *)", "allow Bash(make)", "allow Bash(mkdir *)", "allow Bash(rm *)",
		"allow Bash(npx eslint *)", "allow Bash(docker compose *)", "allow Bash(python3 *)", "allow Bash(* --version)", "allow Bash(sudo systemctl status nginx)",
		"allow Bash(find . -name x -delete)", "allow Bash(touch *)", "allow Bash(sed *)", "allow Bash(source venv/bin/activate)", "allow Bash(cp *)", "allow Bash(awk *)", "allow Bash(./run.sh:*)",
		"deny Bash(git push *)", "deny Read(.env)",
	}
	for _, command := range []string{
		"git commit -m 'fix: a thing'", "git commit -m \"$(cat <<'EOF'\nfix: a thing\n\nWith $(text) and `ticks`\nEOF\n)\"", "git add -A && git commit -m x", "git fetch origin", "git log && git status",
		"git checkout -b feature/x", "git commit -am wip", "git -c user.name=x -c user.email=y commit -m z", "git rebase main", "git add src/*.go", "git config --get user.name", "git config --list",
		"go test ./...", "go test", "go test -run 'TestX|TestY' -v ./src", "timeout 60 go test ./...", "go test ./... 2>&1 | tail -20", "GOOS=windows go build ./...", "go build", "go test ./... && git status",
		"npm run test", "npm run build -- --watch=false", "make", "mkdir -p src/{x,y}", "rm src/a.go", "rm -f *.go", "npx eslint src --fix", "docker compose up -d", "python3 -c 'print(1)'",
		"node --version", "sudo systemctl status nginx", "find . -name x -delete", "ls src | xargs rm", "for d in a b; do mkdir -p $d; done", "sed -i 's/a/b/' main.go", "sed -e 's|a|b|g' main.go",
		"source venv/bin/activate", "cp main.go src/", "awk '{print $1}' main.go", "awk -F, '$1 == \"a\" || $2 {print}' main.go", "./run.sh --all", "(git status; go test)", "if git diff --quiet; then go test; fi",
		`git commit -m "$MSG"`, "touch src/new.go", "git stash; git pull", "git log --oneline | awk '{print $1}'",
	} {
		if v := policy(t, DontAsk, rules...).Decide(shell(place, command)); v.Effect != troupe.Allow {
			t.Errorf("%q: %s (%s: %s)", command, v.Effect, v.By, v.Reason)
		}
	}
	if v := policy(t, DontAsk, "allow Bash(git *)").Decide(shell(place, "git grep 'std::vector'")); v.Effect != troupe.Allow {
		t.Errorf("git grep, where nothing is denied to read: %+v", v)
	}
}

// Where a rule denies to read a file, git shows of all files no more than their
// names and figures; of those that are named it shows all, as where no rule is.
func TestGitShowsWhatIsNotDenied(t *testing.T) {
	place := workspace(t)
	all := []string{"git diff", "git diff HEAD~1", "git diff --cached", "git show", "git show HEAD~1", "git log -p", "git log -p -3", "git show --stat -p", "git diff -- ."}
	some := []string{"git diff -- src", "git diff HEAD~1 -- main.go", "git diff main.go", "git log -p -- src/a.go", "git log -p src", "git log --word-diff", "git show HEAD -- README.md", "git diff --stat", "git diff --name-only HEAD~1",
		"git show --stat", "git show -s --format=%B", "git log", "git log --stat", "git log -S word", "git log --oneline -5", "git diff --quiet", "git status", "git blame main.go"}
	for _, mode := range []Mode{DontAsk, Bypass} {
		for _, command := range slices.Concat(all, some) {
			denied := slices.Contains(all, command)
			if v := policy(t, mode, "deny Read(./.env)", "deny Read(/secrets/**)").Decide(shell(place, command)); (v.Effect == troupe.Allow) == denied || denied && mode == DontAsk && !strings.Contains(v.Reason, "name the files behind --") {
				t.Errorf("%s: %q: %s (%s: %s)", mode, command, v.Effect, v.By, v.Reason)
			}
			for _, rule := range []string{"deny Read(//elsewhere/**)", "deny Bash(rm *)"} {
				if v := policy(t, mode, rule).Decide(shell(place, command)); v.Effect != troupe.Allow {
					t.Errorf("%s, %s: %q: %s (%s: %s)", mode, rule, command, v.Effect, v.By, v.Reason)
				}
			}
		}
	}
}
