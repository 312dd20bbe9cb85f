package tool

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                            "plain\ttext\n",
		"grüße 日本 🙂":                               "grüße 日本 🙂",
		"\x1b[1;31mred\x1b[0m":                     "red",
		"\x1b[2J\x1b[Hclear":                       "clear",
		"\x1b[?25lcursor\x1b[?25h":                 "cursor",
		"\x1b]0;title\x07text":                     "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b]52;c;ZXZpbA==\x07":                   "",
		"\x1bPq#0;2\x1b\\text":                     "text",
		"\x1b]never ended\nnext":                   "\nnext",
		"\x1b]cut":                                 "",
		"\u009b31mred":                             "red",
		"\u009d0;title\u009ctext":                  "text",
		"\x1b(Btext\x1b=":                          "text",
		"\x1b\x1b[31mtwice":                        "twice",
		"\x1b":                                     "",
		"\x1b[31":                                  "",
		"\x1b[\n":                                  "\n",
		"\x1bé":                                    "é",
		"a\r\nb\rc\r":                              "a\nb\nc\n",
		"bell\x07 back\x08 del\x7f nul\x00":        "bell back del nul",
		"bad \xff":                                 "bad \ufffd",
		"\x9b31m":                                  "\ufffd31m",
	} {
		if got := plain([]byte(in)); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"text", "\x1b[31mred", "\x1b]0;t\x07", "\u009b1m", "a\r\n", "\x1b\x1b", "\xff\x1b[", "\x1bP\x1b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := plain(raw)
		if !utf8.ValidString(got) {
			t.Fatalf("plain(%q) = %q is not UTF-8", raw, got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Fatalf("plain(%q) = %q has a control character at %d", raw, got, i)
		}
		if again := plain([]byte(got)); again != got {
			t.Fatalf("plain is not stable: %q, %q, %q", raw, got, again)
		}
	})
}

func TestGitBash(t *testing.T) {
	const wsl, store = `C:\Windows\System32\bash.exe`, `C:\Users\u\AppData\Local\Microsoft\WindowsApps\bash.exe`
	for name, tt := range map[string]struct {
		env   []string
		files []string
		want  string
	}{
		"after that of Windows": {
			env:   []string{`Path=C:\Windows\System32;C:\Users\u\AppData\Local\Microsoft\WindowsApps;D:\Git\bin`},
			files: []string{wsl, store, `D:\Git\bin\bash.exe`},
			want:  `D:\Git\bin\bash.exe`,
		},
		"only that of Windows": {
			env:   []string{`PATH=c:\windows\SYSTEM32\;C:/Windows/System32;C:\Windows\Sysnative`},
			files: []string{wsl, `c:\windows\SYSTEM32\bash.exe`, `C:/Windows/System32\bash.exe`, `C:\Windows\Sysnative\bash.exe`},
		},
		"beside git": {
			env:   []string{`PATH=E:\tools\Git\cmd`},
			files: []string{`E:\tools\Git\cmd\git.exe`, `E:\tools\Git\bin\bash.exe`},
			want:  `E:\tools\Git\bin\bash.exe`,
		},
		"where it is installed": {
			env:   []string{`PATH=`, `ProgramFiles=C:\Program Files`},
			files: []string{`C:\Program Files\Git\bin\bash.exe`},
			want:  `C:\Program Files\Git\bin\bash.exe`,
		},
		"for one user": {
			env:   []string{`LocalAppData=C:\L`},
			files: []string{`C:\L\Programs\Git\bin\bash.exe`},
			want:  `C:\L\Programs\Git\bin\bash.exe`,
		},
		"not from here": {env: []string{`PATH=.;bin;;`}, files: []string{`.\bash.exe`, `bin\bash.exe`, `\bash.exe`}},
	} {
		got, err := gitBash(tt.env, func(path string) bool { return slices.Contains(tt.files, path) })
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), "install Git for Windows") {
			t.Errorf("%s: the error has no remedy: %v", name, err)
		}
	}
}

func TestBashDescription(t *testing.T) {
	spec := (&Bash{}).Spec()
	for _, word := range []string{"Read", "Grep", "Glob", "Edit", "Write", "`cd`", "timeout", "quotes", "no terminal"} {
		if !strings.Contains(spec.Description, word) {
			t.Errorf("the description does not mention %q", word)
		}
	}
	if spec.Name != "Bash" || !strings.Contains(string(spec.Schema), `"command"`) {
		t.Errorf("spec %s %s", spec.Name, spec.Schema)
	}
}
