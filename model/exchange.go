package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/troupe-sh/troupe/internal/failpoint"
)

// DefaultIdle is how long a provider may be silent if nothing else is said.
const DefaultIdle = 300 * time.Second

// An Exchange watches over the HTTP side of one request to a provider. It ends
// a request whose server is silent for too long, and makes an [APIError] of
// every answer that is not the stream that was asked for. It is for one request
// and not for use by several goroutines.
type Exchange struct {
	Provider string           // name in errors
	URL      string           // of the server; named in errors without its secrets
	Model    string           // that was asked for, named when it is not there
	KeyName  string           // what the user sets to give the key: a variable
	Secrets  []string         // keys, which must not get into an error
	Idle     time.Duration    // longest silence; 0 is DefaultIdle
	Now      func() time.Time // clock for a date in Retry-After; may be nil

	silence *time.Timer
}

// Start returns the context for the request, which ends with [ErrIdle] as its
// cause when the server is silent for too long, and a function that releases
// what belongs to it.
func (x *Exchange) Start(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	x.silence = time.AfterFunc(x.limit(), func() { cancel(ErrIdle) })
	return ctx, func() {
		x.silence.Stop()
		cancel(context.Canceled)
	}
}

func (x *Exchange) limit() time.Duration {
	if x.Idle > 0 {
		return x.Idle
	}
	return DefaultIdle
}

// Client returns the client that sends requests as an Exchange needs it: a
// redirect is an answer, because a key must not follow one to another server.
// A nil client stands for one with the default transport.
func Client(c *http.Client) *http.Client {
	if c == nil {
		c = &http.Client{}
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// Post sends the body of d to url with the given headers, between [Exchange.Start] and
// the reading of the stream that it returns. Its error is for [Exchange.Fail].
func (x *Exchange) Post(ctx context.Context, c *http.Client, url string, header http.Header, d *Draft) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(len(d.Body()))
	req.GetBody = func() (io.ReadCloser, error) { return d.Reader(), nil }
	req.Body = d.Reader()
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "troupe")
	return x.Do(req, c.Do)
}

// Do sends req through next, between [Exchange.Start] and the reading of the
// stream. Its error is an [APIError] unless nothing was answered; then it is
// next's own, for [Exchange.Fail].
func (x *Exchange) Do(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	x.silence.Reset(x.limit())
	failpoint.Here(failpoint.RequestSending)
	res, err := next(req)
	x.silence.Stop()
	if err != nil {
		return nil, err
	}
	failpoint.Here(failpoint.RequestOpened)
	res.Body = &watched{ReadCloser: res.Body, x: x}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	isJSON := media == "application/json" || strings.HasSuffix(media, "+json")
	if res.StatusCode < 300 && media != "text/html" && !isJSON {
		return res, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil && len(body) == 0 {
		return nil, err
	}
	return nil, x.refused(res, media, body)
}

// watched lets the idle limit run while somebody waits for the server, and only
// then: a slow reader is not the server's silence.
type watched struct {
	io.ReadCloser
	x *Exchange
}

func (w *watched) Read(p []byte) (int, error) {
	w.x.silence.Reset(w.x.limit())
	defer w.x.silence.Stop()
	return w.ReadCloser.Read(p)
}

// How long Finish waits for each piece, and for how many.
const (
	lingerLimit  = 20 * time.Millisecond
	lingerPieces = 4
)

// Finish reads what is left of a stream whose reply is complete: an HTTP/1
// connection can be used again only if its answer was read to the end. A server
// that does not come to the end at once is not waited for.
func (x *Exchange) Finish(body io.Reader) {
	x.Idle = lingerLimit
	var rest [512]byte
	for range lingerPieces {
		if _, err := body.Read(rest[:]); err != nil {
			return
		}
	}
}

// refused is the error for an answer that is no stream.
func (x *Exchange) refused(res *http.Response, media string, body []byte) error {
	e := &APIError{Provider: x.Provider, Status: res.StatusCode}
	x.parse(e, body)
	if e.Message == "" && media == "text/plain" {
		e.Message = oneLine(string(body), x.Secrets, 300)
	}
	if res.StatusCode < 300 {
		if n := statusOf(e.Type); n != 0 {
			e.Status = n
		} else if e.Message == "" {
			e.Message = "the answer is no stream of events"
		}
	}
	e.After = RetryAfter(res.Header, x.Now)
	e.Transient = temporary(e.Status) && e.Type != quotaUsedUp && res.Header.Get("X-Should-Retry") != "false"
	e.Remedy = x.remedy(e.Status, e.Type)
	e.explain()
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		to, _ := res.Location()
		e.Message = "the server sends its callers elsewhere"
		if to != nil {
			e.Message = "the server redirects to " + bare(to.String())
		}
		e.Remedy = "set the base URL to where it answers itself"
	case media == "text/html":
		e.Message = bare(x.URL) + " answers with a web page and not as an API"
		if !e.Transient {
			e.Remedy = "check the base URL"
		}
	}
	return e
}

// Broken is the error for what a provider said inside its stream: raw is JSON
// that holds an error.
func (x *Exchange) Broken(raw []byte) error {
	e := &APIError{Provider: x.Provider}
	x.parse(e, raw)
	e.Status = statusOf(e.Type)
	// Nothing is known to be wrong with a request that was being answered.
	e.Transient = (e.Status == 0 || temporary(e.Status)) && e.Type != quotaUsedUp
	e.Remedy = x.remedy(e.Status, e.Type)
	e.explain()
	return e
}

// Fail is the error for a request that went wrong with err: the end of the
// context, silence, or a connection that could not be made or was lost. An err
// that already is an [APIError] stays as it is.
func (x *Exchange) Fail(ctx context.Context, err error) error {
	var known *APIError
	if errors.As(err, &known) {
		return known
	}
	cause := context.Cause(ctx)
	if cause != nil && !errors.Is(cause, ErrIdle) {
		return fmt.Errorf("ask %s: %w", x.Provider, cause)
	}
	e := &APIError{Provider: x.Provider, Transient: true}
	switch {
	case cause != nil:
		e.Err, e.Message = ErrIdle, fmt.Sprintf("%s for %s", ErrIdle, x.limit())
	case errors.Is(err, ErrCut):
		e.Err, e.Message = ErrCut, ErrCut.Error()
	default:
		x.unconnected(e, inner(err))
	}
	return e
}

func (x *Exchange) line(err error) string { return oneLine(err.Error(), x.Secrets, 200) }

func (x *Exchange) remedy(status int, kind string) string {
	switch {
	case status == http.StatusProxyAuthRequired:
		return proxyPassword("HTTP_PROXY") // without TLS a proxy answers itself
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "check the key in " + x.KeyName
	case status == http.StatusNotFound:
		return fmt.Sprintf("check that %s has a model %q, or choose another with --model", bare(x.URL), oneLine(x.Model, nil, 100))
	case status == http.StatusPaymentRequired, kind == quotaUsedUp:
		return "check the account's credit"
	}
	return ""
}

// parse reads what an error says into e, in the forms that providers are known
// to use: an object or a text under "error", or the bare fields.
func (x *Exchange) parse(e *APIError, body []byte) {
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return
	}
	fields := outer
	if raw, ok := outer["error"]; ok {
		if text := word(raw); text != "" {
			e.Message = oneLine(text, x.Secrets, 300)
			return
		}
		var in map[string]json.RawMessage
		if json.Unmarshal(raw, &in) == nil && in != nil {
			fields = in
		}
	}
	// The code says more than the type, but for Anthropic there is only a type.
	for _, name := range []string{"code", "type"} {
		if e.Type = oneLine(word(fields[name]), x.Secrets, 60); e.Type != "" {
			break
		}
	}
	e.Param = oneLine(word(fields["param"]), x.Secrets, 60)
	for _, name := range []string{"message", "detail", "msg"} {
		text := word(fields[name])
		if raw := fields[name]; text == "" && len(raw) > 0 && (raw[0] == '{' || raw[0] == '[') {
			text = string(raw) // a list of complaints says more than nothing
		}
		if e.Message = oneLine(text, x.Secrets, 300); e.Message != "" {
			break
		}
	}
}

// word is a JSON text or number as text, "" for anything else.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}
