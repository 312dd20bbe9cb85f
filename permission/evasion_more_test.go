package permission

import (
	"strings"
	"testing"

	"github.com/troupe-sh/troupe"
)

// moreEvasions are commands that do something which the rules of [evasionRules]
// do not allow, or that nobody can tell what they do.
func moreEvasions() []string {
	return []string{
		// lists and pipes
		"git log && touch pwned", "git log; touch pwned", "git log | touch pwned", "git log & touch pwned", "git log || touch pwned", "git log\ntouch pwned", "git log |& touch pwned",
		"git log;touch pwned", "git log&&touch pwned", "ls;touch pwned;ls", "! touch pwned", "git status &\ntouch pwned", "git log \\\n; touch pwned", "ls # x\ntouch pwned", "true; rm -rf a",
		// nesting
		"echo $(touch pwned)", "echo `touch pwned`", `echo "$(touch pwned)"`, "echo \"`touch pwned`\"", "(touch pwned)", "{ touch pwned; }", "ls $(ls; touch pwned)", `echo "${x:-$(touch pwned)}"`,
		"echo ${x:-`touch pwned`}", "if true; then touch pwned; fi", "if touch pwned; then ls; fi", "while touch pwned; do break; done", "until touch pwned; do ls; done", "for x in $(touch pwned); do ls; done",
		"for x in 1; do touch pwned; done", "case $(touch pwned) in *) ls;; esac", "case x in x) touch pwned;; esac", "f() { touch pwned; }; f", "function f { touch pwned; }; f", "ls() { touch pwned; }; ls",
		"cat <<E\n$(touch pwned)\nE", "cat <<E\n`touch pwned`\nE", "cat <<<$(touch pwned)", "cat <<<\"$(touch pwned)\"", "ls <(touch pwned)", "ls > >(touch pwned)", "echo $((1 + $(touch pwned; echo 1)))",
		"[[ -n $(touch pwned) ]]", "x=$(touch pwned)", "x=$(touch pwned) ls", "LANG=$(touch pwned) ls", "a=(1 $(touch pwned))", "ls ${x[$(touch pwned)]}", "((x = $(touch pwned; echo 1)))", "ls 2>$(touch pwned; echo /dev/null)",
		"time touch pwned", "coproc touch pwned", "echo $(echo $(echo $(touch pwned)))", "ls $(<main.go; touch pwned)", `echo "$(echo "$(touch pwned)")"`, "[ -n \"$(touch pwned)\" ]", "case x in $(touch pwned)) ls;; esac",
		"for ((i=0; i<$(touch pwned; echo 1); i++)); do ls; done", "echo ${x/a/$(touch pwned)}", "select x in $(touch pwned); do break; done </dev/null", "[[ a =~ $(touch pwned) ]]", "echo $[ $(touch pwned; echo 1) ]",
		// what is evaluated again
		"eval touch pwned", "eval 'touch pwned'", "eval \"tou\"\"ch pwned\"", "source ./evil", ". ./evil", "exec touch pwned", "trap 'touch pwned' EXIT", "alias x='touch pwned'", "command eval 'touch pwned'", "builtin eval 'touch pwned'",
		"bash -c 'touch pwned'", "sh -c 'touch pwned'", "bash -c \"touch pwned\"", "bash -ec 'touch pwned'", "bash -c 'bash -c \"touch pwned\"'", "C='touch pwned'; bash -c \"$C\"", "bash <<< 'touch pwned'; touch pwned",
		"x='a[$(touch pwned)]'; echo $((x))", "x='a[$(touch pwned)]'; ((x))", "x='a[$(touch pwned)]'; [[ $x -eq 0 ]]", "test -v 'a[$(touch pwned)]'", "printf -v 'a[$(touch pwned)]' x", "x='$(touch pwned)'; echo ${x@P}",
		"x='a[$(touch pwned)]'; echo ${!x}", "x='a[$(touch pwned)]'; let x", "x='a[$(touch pwned)]'; echo ${y:x}", "declare 'a[$(touch pwned)]=1'", "mapfile -C 'touch pwned;' -c 1 < main.go", "complete -C 'touch pwned' x", "enable -f ./x x",
		// names of programs
		"$X pwned", "X=touch; $X pwned", "x=touch; $x pwned", "${x:-touch} pwned", "$(echo touch) pwned", "`echo touch` pwned", "t'o'uch pwned", `t\ouch pwned`, "/usr/bin/touch pwned", "/bin/t?uch pwned", "{touch,pwned}", "to''uch pwned",
		"$'touch' pwned", `$'\x74ouch' pwned`, "'git log'; touch pwned", "./git status", "/tmp/git status", "../git log", "\"git\"x log", "gitx log", "git-evil", "lsof", "'ls'of", "\\lsof -i", "ls-evil -la",
		// wrappers
		"timeout 5 touch pwned", "nice touch pwned", "nohup touch pwned", "stdbuf -oL touch pwned", "command touch pwned", "env touch pwned", "env A=b touch pwned", "env -i touch pwned", "env -S 'touch pwned'", "echo pwned | xargs touch",
		"xargs -I{} touch {} <<< pwned", "ls | xargs -n1 sh -c 'touch pwned'", "xargs sh -c 'touch pwned' < /dev/null", "timeout --foreground 5 nice -n 3 touch pwned", "time -p touch pwned", "setsid touch pwned", "flock x touch pwned",
		"watch -n1 touch pwned", "watch ls", "sudo git log", "busybox touch pwned", "parallel touch ::: pwned", "ionice ls", "ssh h ls", "script -c 'touch pwned' /dev/null", "strace ls", "nice -n 5 env -u X touch pwned", "timeout $T touch pwned", "/tmp/timeout 5 git status", "./env git log", "/tmp/bash -c 'git log'", "bash -l -c 'git log'", "bash -c \"$X\"",
		// variables that steer programs
		"PATH=/tmp/x:$PATH git status", "LD_PRELOAD=./x.so ls", "GIT_SSH_COMMAND='touch pwned' git fetch", "GIT_PAGER='touch pwned' git log", "PAGER=x git log", "GIT_EXTERNAL_DIFF='touch pwned' git diff", "GOFLAGS=-toolexec=x go test ./...",
		"export PATH=/tmp; ls", "PATH=/tmp; ls", "declare -x PATH=/tmp; ls", "readonly PATH=/tmp; ls", "BASH_ENV=./x bash -c ls", "IFS=x; ls", "env PATH=/tmp ls", "for PATH in /tmp; do ls; done", "https_proxy=http://x git fetch", "TZ=/etc/x date",
		": ${PATH:=/tmp}", "ls {PATH}>/dev/null", "LC_ALL=../x ls", "SHELLOPTS=xtrace PS4='$(touch pwned)' bash -c ls", "x+=y", "PATH+=:/tmp; ls", "printf -v PATH /tmp", "x=-v; printf \"$x\" 'a[$(touch pwned)]' y", "x=-v; test \"$x\" 'a[$(touch pwned)]'", "echo 'touch pwned' | bash", "bash < main.go", "echo 'touch pwned' | sh -s", "cat(){ echo -c; }; git $(cat <<E\nlog\nE\n)", "read PATH < main.go; ls", "GOOS=$(touch pwned) git log",
		// git
		"git -c core.pager='touch pwned' log", "git -c alias.x='!touch pwned' x", "git -c core.sshCommand='touch pwned' fetch", "git -c core.fsmonitor='touch pwned' status", "git -c core.editor='touch pwned' commit", "git -C /tmp status",
		"git -C src status", "git --exec-path=/tmp log", "git --git-dir=/tmp/x log", "git --git-dir /tmp/x log", "git --config-env=core.pager=X log", "git fetch --upload-pack='touch pwned' .", "git fetch --upload-pa='touch pwned' .",
		"git clone -u 'touch pwned' . x", "git clone --config core.x=y . x", "git clone -c core.x=y . x", "git clone --template=/tmp/x . y", "git init --template=/tmp/x", "git rebase --exec 'touch pwned' main", "git rebase -x 'touch pwned' HEAD~1",
		"git bisect run touch pwned", "git submodule foreach 'touch pwned'", "git grep -O'touch pwned' x", "git grep --open-files-in-pager='touch pwned' x", "git grep --open='touch pwned' x", "git diff --ext-diff", "git log -p --ext-diff", "git x",
		"git config core.pager 'touch pwned'", "git config alias.x '!touch pwned'", "git config --global core.pager x", "git difftool -x 'touch pwned'", "git mergetool", "git filter-branch --tree-filter 'touch pwned'", "git clone 'ext::sh -c touch% pwned'",
		"git remote add x 'ext::sh -c touch% pwned'", "git push origin main", "git  push origin", "'git' push", "g\\it push", "/usr/bin/git push", "command git push", "timeout 5 git push", "git $SUB", "git $(echo push)", "git ${x}push", "GIT push", "$\"git\" status", "'git log' x",
		"git log --output=/tmp/x", "git diff --no-index /etc/passwd /etc/group", "git archive --remote=x --exec='touch pwned' HEAD", "git send-email --smtp-server=./x", "cd src && git status", "cd out && git log", "git hook run x", "git credential-store",
		"git --paginate=x log", "git -p log", "git instaweb", "git log \"$OPT\"", "git commit $ARGS", "git commit -m $X", "git commit -m \"$@\"", "git fetch 'ext::x'", "git archive -o /etc/x HEAD", "git worktree --exec=x", "git 'log --output=x'",
		// options of other programs
		"find . -exec touch pwned \\;", "find . -execdir touch pwned \\;", "find . -ok touch pwned \\;", "find . -delete", "find . -fprint pwned", "find . -name x -fprintf pwned x", "find . $X", "find . -fls pwned", "sed -n '1e touch pwned' main.go",
		"sed '1w pwned' main.go", "sed 's/x/touch pwned/e' main.go", "sed 's/x/y/w pwned' main.go", "sed -f evil main.go", "sed -f p main.go", "sed -nf p main.go", "sed -e p -e '1e touch pwned' main.go", "sed --expression='1e touch pwned' main.go", "sed -n 'p;e touch pwned' main.go",
		"sed \"$S\" main.go", "sed 'y/x/x/;e touch pwned' main.go", "sed '/x/{e touch pwned\n}' main.go", "sed 's,x,y,;w pwned' main.go", "sed -ne'1e touch pwned' main.go", "awk 'BEGIN{system(\"touch pwned\")}'", "awk '{print > \"pwned\"}' main.go",
		"awk '{print | \"touch pwned\"}' main.go", "awk 'BEGIN{\"touch pwned\" | getline}'", "awk -f evil main.go", "awk \"$P\" main.go", "sort -o pwned main.go", "sort --compress-program=./x main.go", "sort --comp=./x main.go", "sort -uo pwned main.go",
		"rg --pre ./x y", "rg --pre=./x y", "rg --hostname-bin=./x y", "tar --to-command='touch pwned' -xf a", "tar xf a --checkpoint=1 --checkpoint-action=exec='touch pwned'", "tar -I 'touch pwned' -cf a b", "tar cIf 'touch pwned' a b",
		"tar --use-compress=x -cf a b", "man -P 'touch pwned' ls", "man --pager='touch pwned' ls", "go test -exec 'touch pwned' ./...", "go test -toolexec=./x ./...", "go test --exec=./x ./...", "go vet -vettool=./x", "echo x | tee pwned",
		// files
		"echo x > /etc/pwned", "echo x > ~/pwned", "echo x > $F", "echo x > out/pwned", "echo x > ../pwned", "echo x >> ../outside/file", "echo x > dangling", "echo x >| ../pwned", "echo x &> ../pwned", "ls 2> ../pwned", "echo x >& ../pwned",
		"echo x > pwned", "echo x > pw*", "echo x <> pwned", "cat < /etc/passwd", "cat < ../outside/file", "cat /etc/passwd", "cat ../outside/file", "cat out/file", "cat up/../../outside/file", "cat ~/.bashrc", "cat $F", "cat .env", "cat ./.env",
		"cat link.txt", "cat here/.env", "cat .e*", "cat .en?", "cat .ENV", "cat < .env", "grep K .env", "grep -f.env main.go", "grep -r K .", "rg K", "rg --hidden K .", "head -1 .env", "cp .env x", "base64 .env", "cat src/../.env", "cat '.env'",
		"cat .e''nv", "cat .\\env", "cat {.env,main.go}", "git show HEAD:.env", "cd src && cat ../.env", "cd src && cat ../../outside/file", "cd / && ls", "cd && ls", "cd - && ls", "cd .. && ls", "cd $D && ls", "cd up && cat ../outside/file",
		"while true; do cd ..; ls; done", "pushd /; ls", "wc --files0-from=/etc/x", "grep x --file=/etc/passwd", "grep -if/etc/passwd x", "uniq main.go pwned", "date -s 2020-01-01", "date 01010000", "file -C -m x",
		"jq -f /etc/passwd main.go", "diff main.go /etc/passwd", "du -sh /", "cat out/*", "cat loop", "echo x > .git/config", "echo x > .git/hooks/pre-commit",
		"touch /locked/x", "rm x", "r'm' x", "/bin/rm x", "env rm x", "find . -exec rm {} \\;", "xargs rm", "sudo rm x", "bash -c 'rm x'", "eval 'rm x'", "ssh h 'rm x'", "R=rm; $R x", "docker exec c rm x", "echo $(rm x)", "RM x", "rm", "\\rm x", "$Y rm x",
		// odd text
		"ls\x00; touch pwned", "ls\r\ntouch pwned", "ls \x1b[2J", "ls \x7f", "ls 'unclosed", "ls $(", "ls )", "<<E", "&& touch pwned", "", " ", ";", "ls ${", "ls `", "if ls", "ls ;; touch pwned", "[[ -v a ]]", strings.Repeat("(", 70000),
	}
}

// Ways around the rules, and text that is odd, in many more spellings.
func TestMoreEvasions(t *testing.T) {
	place := workspace(t)
	for _, mode := range []Mode{Default, DontAsk, Plan} {
		p := policy(t, mode, evasionRules()...)
		for _, command := range moreEvasions() {
			if v := p.Decide(shell(place, command)); v.Effect == troupe.Allow {
				t.Errorf("%s: %.80q is allowed (%s: %s)", mode, command, v.By, v.Reason)
			}
		}
	}
}
