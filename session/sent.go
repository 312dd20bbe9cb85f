package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
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
	path string
	f    *os.File
	last []byte
}

type sentLine struct {
	Time time.Time
	Keep int    // bytes of the body before that this one begins with
	Sum  string // SHA-256 of the whole body, in hex
	Tail string
}

func sentPath(log string) string { return strings.TrimSuffix(log, ".jsonl") + ".sent.jsonl" }

func (s *sentFile) add(now time.Time, body []byte) error {
	if s.f == nil {
		f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		s.f = f
	}
	keep := commonPrefix(s.last, body)
	sum := sha256.Sum256(body)
	b, err := troupe.Encode(sentLine{now, keep, hex.EncodeToString(sum[:]), string(body[keep:])})
	if err != nil {
		return err
	}
	// The newline in front ends a line that was torn before.
	if _, err := appendWhole(s.f, append(append([]byte{'\n'}, b...), '\n')); err != nil {
		s.last = nil // what is in the file is not known: the next one is written whole
		return err
	}
	s.last = append(s.last[:keep], body[keep:]...)
	return nil
}

func (s *sentFile) close() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	s.f, s.last = nil, nil
	return err
}

// commonPrefix returns how many bytes a and b have in common at the
// beginning, less what would cut a character.
func commonPrefix(a, b []byte) int {
	n := 0
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
