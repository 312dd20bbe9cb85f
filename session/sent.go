package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"iter"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/failpoint"
)

// A Request is the body of a request as it was sent.
type Request struct {
	Time time.Time
	Body []byte
}

// sentFile keeps the requests of one agent. A request repeats nearly all of
// the one before, so only what follows their common prefix is written: the
// file grows with the conversation, not with its square.
type sentFile struct {
	path   string
	f      *os.File
	last   []byte // the last body from its byte at on, to see what the next one repeats
	at     int
	series any // of the last
	hashed int // bytes of the last that sum is of
	sum    hash.Cloner
}

// window is how much of the last body is kept at least, in bytes: of a series it
// is known what the bodies begin with, and they differ near their ends.
const window = 256 << 10

type sentLine struct {
	Time time.Time
	Keep int    // bytes of the body before that this one begins with
	Base string `json:",omitempty"` // SHA-256 of these bytes, in hex, if there are any
	Sum  string // SHA-256 of the whole body, in hex
	Tail string
}

// append appends the JSON form of l to b: what [troupe.Encode] makes of it,
// without what that costs for a long text.
func (l sentLine) append(b []byte) ([]byte, error) {
	text := l.Tail
	l.Tail = ""
	head, err := troupe.Encode(l)
	if err != nil {
		return nil, err
	}
	b = append(b, bytes.TrimSuffix(head, []byte(`""}`))...)
	return append(troupe.AppendText(b, text), '}'), nil
}

func sentPath(log string) string { return strings.TrimSuffix(log, ".jsonl") + ".sent.jsonl" }

func (s *sentFile) add(now time.Time, sent troupe.Sent) error {
	body := sent.Body
	keep, err := s.keep(sent)
	if err != nil {
		return err
	}
	base, sum, err := s.sums(body, keep)
	if err != nil {
		return err
	}
	// The newline in front ends a line that was torn before.
	b := append(make([]byte, 0, len(body)-keep+(len(body)-keep)/8+lineAround), '\n')
	if b, err = (sentLine{now, keep, base, sum, string(body[keep:])}).append(b); err != nil {
		return err
	}
	b = append(b, '\n')
	failpoint.Torn(failpoint.SentHalf, s.f, b)
	if _, err := appendWhole(s.f, b); err != nil {
		s.forget() // what is in the file is not known: the next one is written whole
		return err
	}
	s.remember(sent, keep)
	return nil
}

// remember keeps what the next request will be compared with. The first keep
// bytes of the body are those of the one before.
func (s *sentFile) remember(sent troupe.Sent, keep int) {
	from := 0
	if sent.Series != nil {
		from = max(0, len(sent.Body)-window)
		for from > 0 && !utf8.RuneStart(sent.Body[from]) {
			from--
		}
	}
	if known := keep - s.at; s.at <= from && from-s.at <= window && known >= 0 && known <= len(s.last) {
		from, s.last = s.at, append(s.last[:known], sent.Body[keep:]...)
	} else {
		s.last = append(s.last[:0], sent.Body[from:]...)
	}
	s.at, s.series = from, sent.Series
}

// lineAround is about what a line has besides its tail, in bytes.
const lineAround = 300

// keep returns how many bytes of the body before this one begins with. If the
// file was just opened the body before is not known, but how its line says that
// it begins: nearly always a conversation that goes on begins in the same way.
func (s *sentFile) keep(sent troupe.Sent) (int, error) {
	if s.f != nil {
		same := 0
		if sent.Series != nil && sent.Series == s.series {
			same = min(sent.Same, s.at+len(s.last), len(sent.Body))
		}
		if same < s.at { // of what follows nothing is known
			return commonPrefix(sent.Body[:same], sent.Body, same), nil
		}
		return s.at + commonPrefix(s.last, sent.Body[s.at:], same-s.at), nil
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	s.f = f
	before, ok := lastLine(f)
	if !ok || before.Base == "" || before.Keep > len(sent.Body) {
		return 0, nil
	}
	base, _, err := s.sums(sent.Body, before.Keep)
	if err != nil || base != before.Base {
		return 0, err
	}
	return before.Keep, nil
}

// lastLine reads the last line of f, if it is whole and not too long to be
// looked for.
func lastLine(f *os.File) (l sentLine, ok bool) {
	info, err := f.Stat()
	if err != nil {
		return l, false
	}
	const most = 1 << 20
	from := max(0, info.Size()-most)
	end := make([]byte, info.Size()-from)
	if _, err := f.ReadAt(end, from); err != nil {
		return l, false
	}
	end, whole := bytes.CutSuffix(end, []byte{'\n'})
	at := bytes.LastIndexByte(end, '\n')
	if !whole || at < 0 {
		return l, false
	}
	err = json.Unmarshal(end[at:], &l)
	return l, err == nil
}

// sums returns the SHA-256 of body and of its first keep bytes, which are those of
// the last one; "" is that of none. What was hashed of those already is not hashed
// again.
func (s *sentFile) sums(body []byte, keep int) (base, whole string, err error) {
	if s.sum == nil || s.hashed > keep {
		s.sum, s.hashed = sha256.New().(hash.Cloner), 0
	}
	s.sum.Write(body[s.hashed:keep])
	s.hashed = keep
	if keep > 0 {
		base = hex.EncodeToString(s.sum.Sum(nil))
	}
	all, err := s.sum.Clone()
	if err != nil {
		return "", "", fmt.Errorf("copy the checksum so far: %w", err)
	}
	all.Write(body[keep:])
	return base, hex.EncodeToString(all.Sum(nil)), nil
}

func (s *sentFile) forget() { *s = sentFile{path: s.path, f: s.f} }

func (s *sentFile) close() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	s.f = nil
	s.forget()
	return err
}

// commonPrefix returns how many bytes a and b have in common at the
// beginning, less what would cut a character. The first same are known to be.
func commonPrefix(a, b []byte, same int) int {
	const piece = 512 // bytes that are compared at once
	n := same
	for n+piece <= min(len(a), len(b)) && bytes.Equal(a[n:n+piece], b[n:n+piece]) {
		n += piece
	}
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(b) && b[n]&0xC0 == 0x80 {
		n--
	}
	return n
}

// Requests yields the requests that an agent sent, oldest first. One that
// cannot be restored is yielded as an error, and those that build on it too.
func Requests(dir, agent string) iter.Seq2[Request, error] {
	return func(yield func(Request, error) bool) {
		f, err := os.Open(sentPath(LogPath(dir, agent)))
		if err != nil {
			yield(Request{}, fmt.Errorf("read requests: %w", err))
			return
		}
		defer f.Close()
		var body []byte
		for b, err := range lines(f) {
			if err != nil {
				yield(Request{}, fmt.Errorf("read requests: %w", err))
				return
			}
			if len(b.text) <= 1 {
				continue
			}
			req, err := restore(body, b.text)
			if err != nil {
				err = &Damage{f.Name(), b.number, err}
			}
			body = req.Body
			if !yield(req, err) {
				return
			}
		}
	}
}

func restore(before, text []byte) (Request, error) {
	var l sentLine
	if err := json.Unmarshal(text, &l); err != nil {
		return Request{}, fmt.Errorf("broken record: %w", err)
	}
	if l.Keep < 0 || l.Keep > len(before) {
		return Request{}, errors.New("the request before it is missing")
	}
	body := append(before[:l.Keep:l.Keep], l.Tail...)
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != l.Sum {
		return Request{}, errors.New("the bytes do not match their checksum")
	}
	return Request{l.Time, body}, nil
}
