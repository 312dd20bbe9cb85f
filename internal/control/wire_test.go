package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/troupe-sh/troupe"
)

func TestLines(t *testing.T) {
	long := `{"type":"user","x":"` + strings.Repeat("x", 1<<20) + `"}`
	in := "{\"type\":\"a\"}\r\n\n   \nnot JSON\n" + long + "\n" + `{"type":"b"}` + "\n" + `{"type":"end"}` // without a line's end
	c := NewConn(strings.NewReader(in), io.Discard)
	c.max = 1 << 20
	defer c.Close()
	var got []string
	for text, err := range c.lines() {
		l := parse(text, err)
		switch {
		case l.err == nil:
			got = append(got, l.Type)
		case errors.Is(l.err, errLong) && len(l.text) == 80:
			got = append(got, "too long")
		default:
			got = append(got, "wrong: "+strings.TrimSpace(string(l.text)))
		}
	}
	if want := "a|wrong: not JSON|too long|b|end"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// A reader blocks a writer until it reads.
type slow struct {
	free chan struct{}
	mu   sync.Mutex
	got  bytes.Buffer
}

func (s *slow) Write(b []byte) (int, error) {
	<-s.free
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(b)
}

// What answers goes in front of what is printed, lines never mix, and a client
// that does not read keeps nobody from answering.
func TestAnswersGoInFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &slow{free: make(chan struct{})}
		c := NewConn(strings.NewReader(""), out)
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				if _, err := fmt.Fprintf(c, "{\"message\":%d}\n", i); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // one of them is being written, the others wait
		for i := range 100 {
			c.reply(fmt.Sprint(i), object{})
		}
		close(out.free)
		wg.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.got.String()), "\n")
		if len(lines) != 103 {
			t.Fatalf("%d lines", len(lines))
		}
		for i, line := range lines {
			if !json.Valid([]byte(line)) || strings.Contains(line, "message") != (i == 0 || i > 100) {
				t.Errorf("line %d: %s", i, line)
			}
		}
		if _, err := c.Write([]byte("late\n")); err == nil {
			t.Error("a closed connection takes lines")
		}
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestAClientThatCannotBeWrittenTo(t *testing.T) {
	c := NewConn(strings.NewReader(""), broken{})
	c.reply("1", object{})
	if _, err := c.Write([]byte("x\n")); err == nil || !strings.Contains(err.Error(), "nobody reads") {
		t.Error(err)
	}
	if err := c.Close(); err == nil {
		t.Error("nobody is told")
	}
}

// asking returns a connection on which one request was made, its id, and what
// comes of it.
func asking(t *testing.T, ctx context.Context, in io.Reader) (c *Conn, out *slow, done chan answer) {
	t.Helper()
	out = &slow{free: make(chan struct{})}
	close(out.free)
	c = NewConn(in, out)
	done = make(chan answer, 1)
	go func() {
		raw, err := c.Ask(ctx, object{"subtype": "test"})
		done <- answer{raw, err}
	}()
	synctest.Wait()
	return c, out, done
}

func TestRequestsToTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, done := asking(t, t.Context(), strings.NewReader(""))
		if c.answered("other", answer{}) {
			t.Error("somebody waits for what was never asked")
		}
		if !c.answered("req_1", answer{response: json.RawMessage(`{"yes":1}`)}) || c.answered("req_1", answer{}) {
			t.Error("not the first answer alone is taken")
		}
		if a := <-done; a.err != nil || string(a.response) != `{"yes":1}` {
			t.Errorf("%+v", a)
		}
		_ = c.Close()

		ctx, cancel := context.WithCancelCause(t.Context())
		c, out, done := asking(t, ctx, strings.NewReader(""))
		cancel(troupe.ErrInterrupted)
		if a := <-done; !errors.Is(a.err, troupe.ErrInterrupted) {
			t.Errorf("%+v", a)
		}
		if c.answered("req_1", answer{}) {
			t.Error("somebody waits for what was taken back")
		}
		_ = c.Close()
		if !strings.Contains(out.got.String(), `"control_cancel_request"`) {
			t.Errorf("the client does not know: %s", out.got.String())
		}

		r, w := io.Pipe()
		c, _, done = asking(t, t.Context(), r)
		go func() {
			for range c.lines() {
			}
		}()
		_ = w.Close() // the client closes its side
		if a := <-done; !errors.Is(a.err, ErrGone) {
			t.Errorf("%+v", a)
		}
		if _, err := c.Ask(t.Context(), object{}); !errors.Is(err, ErrGone) {
			t.Error(err)
		}
		_ = c.Close()
	})
}

func TestContent(t *testing.T) {
	for in, want := range map[string]string{
		`"hi"`:                          `[{"Text":"hi"}]`,
		`[{"type":"text","text":"hi"}]`: `[{"Text":"hi"}]`,
		`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]`: `[{"Image":{"Media":"image/png","Data":"AA=="}}]`,
		`[{"type":"document","source":{"type":"text","data":"d"}}]`:                            `[{"Text":"d"}]`,
		`" "`: "", `[]`: "", `{}`: "", `[{"type":"video"}]`: "",
		`[{"type":"image","source":{"type":"url","url":"http://x"}}]`: "",
	} {
		got, err := contentOf([]byte(in))
		text := ""
		if err == nil {
			raw, _ := json.Marshal(got)
			text = string(raw)
		}
		if text != want {
			t.Errorf("%s: %s, %v", in, text, err)
		}
	}
}
