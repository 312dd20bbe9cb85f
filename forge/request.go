package forge

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-sh/troupe/model"
)

const (
	requestLimit = 60 * time.Second // for a request with its answer
	answerLimit  = 32 << 20         // bytes; 100 comments are seldom one
	errorLimit   = 64 << 10         // bytes read of an answer that is an error
	longestWait  = 24 * time.Hour   // that a server may ask for
	secondary    = time.Minute      // wait for a limit of which the server says no time
)

// A failure is a request that came to nothing.
type failure struct {
	err       error
	temporary bool          // it may be made again
	limited   bool          // because of a limit of requests
	after     time.Duration // not before
	status    int           // of the answer; 0 if there was none
}

// Error implements error.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// An answer is a page that was fetched, or found unchanged.
type answer struct {
	unchanged bool
	body      []byte
	etag      string
	next      *url.URL // the next page
	linked    bool     // the answer had a Link header, so next counts also if it is nil
	poll      time.Duration
}

// get fetches u, unless it is as it was when it had this etag. The error is a
// *failure, or the cause of ctx.
func (a *API) get(ctx context.Context, u *url.URL, etag string) (answer, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	if wait := a.until.Sub(a.now()); wait > 0 {
		return answer{}, &failure{err: errors.New("the limit of requests is reached"), temporary: true, limited: true, after: wait}
	}
	within, cancel := context.WithTimeoutCause(ctx, requestLimit, fmt.Errorf("no answer in %s", requestLimit))
	defer cancel()
	out, err := a.ask(within, u, etag)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return answer{}, cause
	}
	return out, err
}

func (a *API) ask(ctx context.Context, u *url.URL, etag string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return answer{}, &failure{err: fmt.Errorf("%w: %s", ErrAddress, bare(u.String()))}
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	req.Header.Set("User-Agent", "troupe")
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	res, err := a.client.Do(req)
	if err != nil {
		return answer{}, a.unreached(ctx, err)
	}
	defer res.Body.Close()
	a.note(res.Header)
	if res.StatusCode != http.StatusOK && (res.StatusCode != http.StatusNotModified || etag == "") {
		return answer{}, a.refused(res)
	}
	out := answer{etag: res.Header.Get("ETag"), unchanged: res.StatusCode == http.StatusNotModified}
	out.linked = res.Header.Get("Link") != ""
	if out.next, err = a.next(u, res.Header.Values("Link")); err != nil {
		return answer{}, &failure{err: err}
	}
	if n, err := strconv.Atoi(res.Header.Get("X-Poll-Interval")); err == nil && n > 0 {
		out.poll = min(time.Duration(n)*time.Second, time.Hour)
	}
	if out.unchanged {
		return out, nil
	}
	out.body, err = io.ReadAll(io.LimitReader(res.Body, answerLimit+1))
	if err != nil {
		return answer{}, a.unreached(ctx, err)
	}
	if len(out.body) > answerLimit {
		return answer{}, &failure{err: fmt.Errorf("the answer of %s has more than %d MB; check GITHUB_API_URL", bare(u.String()), answerLimit>>20)}
	}
	return out, nil
}

// unreached says what went wrong before there was an answer. What package
// net/http puts around it is left out: an address may hold what is not to be seen.
func (a *API) unreached(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var verify *tls.CertificateVerificationError
	var dns *net.DNSError
	final := errors.Is(err, errElsewhere) || errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &verify)
	remedy := ""
	switch {
	case errors.As(err, &verify):
		remedy = "; if an authority of your own signs there, name its certificate in TROUPE_CA_FILE"
	case errors.As(err, &dns) && dns.IsNotFound:
		remedy = "; check the network and GITHUB_API_URL"
	}
	return &failure{err: fmt.Errorf("ask %s: %s%s", bare(a.base.String()), a.mask.Text(oneLine(err.Error(), 200)), remedy), temporary: !final}
}

// note keeps what the server says of its limit.
func (a *API) note(h http.Header) {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	reset, rerr := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil || rerr != nil {
		a.left = -1
		return
	}
	// The server's own clock is what the reset is by; the one here may be wrong.
	server, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		server = a.now()
	}
	wait := min(max(time.Unix(reset, 0).Sub(server), 0)+time.Second, longestWait)
	a.left, a.reset = max(left, 0), a.now().Add(wait)
	if left <= 0 {
		a.until = later(a.until, a.reset)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// refused says what an answer means that is none.
func (a *API) refused(res *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(res.Body, errorLimit))
	var said struct{ Message string }
	if err != nil || json.Unmarshal(raw, &said) != nil {
		said.Message = "" // the status has to do
	}
	text := a.mask.Text(oneLine(said.Message, 200))
	f := &failure{status: res.StatusCode, err: fmt.Errorf("%s answers %d %s", bare(a.base.String()), res.StatusCode, strings.TrimSpace(http.StatusText(res.StatusCode)+": "+text))}
	if text == "" {
		f.err = fmt.Errorf("%s answers %d %s", bare(a.base.String()), res.StatusCode, http.StatusText(res.StatusCode))
	}
	if a.limit(f, res, text) {
		return f
	}
	switch res.StatusCode {
	case http.StatusUnauthorized:
		f.err = fmt.Errorf("%w: %w; set GITHUB_TOKEN (or GH_TOKEN) to a valid one", ErrToken, f.err)
	case http.StatusForbidden:
		f.err = fmt.Errorf("%w: %w; it must be allowed to read pull requests, checks and commit statuses of the repository", ErrToken, f.err)
	case http.StatusNotFound:
		f.err = fmt.Errorf("%w: %w; check repository and number, and that GITHUB_TOKEN (or GH_TOKEN) may read it", ErrNotFound, f.err)
	case http.StatusRequestTimeout:
		f.temporary = true
	default:
		f.temporary = res.StatusCode >= 500
		f.after = model.RetryAfter(res.Header, a.now)
	}
	return f
}

// limit reports whether a refusal is one for too many requests, and how long to
// wait then. A 403 without a sign of a limit is about rights.
func (a *API) limit(f *failure, res *http.Response, text string) bool {
	after := model.RetryAfter(res.Header, a.now)
	spent := res.Header.Get("X-RateLimit-Remaining") == "0"
	told := strings.Contains(strings.ToLower(text), "rate limit") || strings.Contains(strings.ToLower(text), "abuse detection")
	if res.StatusCode != http.StatusTooManyRequests && (res.StatusCode != http.StatusForbidden || after == 0 && !spent && !told) {
		return false
	}
	if after == 0 && !spent {
		after = secondary
	}
	a.until = later(a.until, a.now().Add(after))
	f.temporary, f.limited, f.after = true, true, a.until.Sub(a.now())
	return true
}

// next is the page that a Link header names as the next of u.
func (a *API) next(u *url.URL, headers []string) (*url.URL, error) {
	for _, rest := range headers {
		for {
			_, after, ok := strings.Cut(rest, "<")
			if !ok {
				break
			}
			target, params, ok := strings.Cut(after, ">")
			if !ok {
				break
			}
			if i := strings.IndexByte(params, '<'); i >= 0 {
				params, rest = params[:i], params[i:]
			} else {
				rest = ""
			}
			if !isNext(params) {
				continue
			}
			to, err := u.Parse(target)
			if err != nil || !a.same(to) {
				return nil, errElsewhere
			}
			return to, nil
		}
	}
	return nil, nil
}

// isNext reports whether the parameters of a link say rel="next".
func isNext(params string) bool {
	for p := range strings.SplitSeq(strings.TrimRight(strings.TrimSpace(params), ","), ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(name, "rel") && strings.EqualFold(strings.Trim(value, `"`), "next") {
			return true
		}
	}
	return false
}

// pace is how long to wait so that the requests that are left last until the
// reset, if each poll takes n of them. 0 if the server does not say.
func (a *API) pace(ctx context.Context, n int) time.Duration {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return 0
	}
	rest := a.reset.Sub(a.now())
	if a.left < 0 || rest <= 0 || n <= 0 {
		return 0
	}
	return rest / time.Duration(max(a.left/n, 1))
}
