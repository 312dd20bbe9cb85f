package troupetest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Forge is a service with pull requests for tests. It speaks what the REST
// API of GitHub says of them: pages with Link headers, ETags of the body alone,
// limits of requests. It only reads; what happens in its pull requests is done by
// methods. They are safe for concurrent use.
type Forge struct {
	t      testing.TB
	serve  sync.Once
	server *httptest.Server

	mu       sync.Mutex
	token    string
	pageSize int
	poll     time.Duration
	pulls    map[string]*ForgePull
	lastID   int64
	faults   []ForgeFault
	requests []ForgeRequest

	limit, left int // requests in a window; 0 is no limit
	window      time.Duration
	reset       time.Time
}

// A ForgeRequest is one that a [Forge] was asked, and how it was answered.
type ForgeRequest struct {
	Path   string // with the query
	Header http.Header
	Status int // 0: the connection was cut
	At     time.Time
}

// A ForgeFault takes the place of an answer.
type ForgeFault struct {
	Path   string // part of the paths that it is for; "" is all
	Status int    // 0 cuts the connection
	Header map[string]string
	Body   string
	Always bool // it stays
}

// NewForge returns a forge without pull requests, which ends with the test.
func NewForge(t testing.TB) *Forge {
	return &Forge{t: t, pageSize: 100, pulls: map[string]*ForgePull{}, lastID: 1000}
}

// URL is the address of the forge on the loopback interface, where it serves from
// the first call on.
func (f *Forge) URL() string {
	f.serve.Do(func() {
		f.server = httptest.NewServer(f)
		f.t.Cleanup(f.server.Close)
	})
	return f.server.URL
}

// Transport carries requests to the forge without a network, whatever their host
// is: for tests with a clock of their own.
func (f *Forge) Transport() http.RoundTripper { return forgeTransport{f} }

type forgeTransport struct{ f *Forge }

// RoundTrip implements [http.RoundTripper].
func (t forgeTransport) RoundTrip(req *http.Request) (res *http.Response, err error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			res, err = nil, io.ErrUnexpectedEOF
		} else if p != nil {
			panic(p)
		}
	}()
	w := httptest.NewRecorder()
	t.f.ServeHTTP(w, req)
	res = w.Result()
	res.Request = req
	return res, nil
}

// Token makes the forge accept this token alone.
func (f *Forge) Token(token string) { f.set(func() { f.token = token }) }

// PageSize is how many things a page has at most; 100 without it.
func (f *Forge) PageSize(n int) { f.set(func() { f.pageSize = n }) }

// PollInterval makes the forge ask not to be polled more often.
func (f *Forge) PollInterval(d time.Duration) { f.set(func() { f.poll = d }) }

// Limit allows n requests in each window, which begins with its first. Answers
// that nothing has changed do not count, but for those to nobody.
func (f *Forge) Limit(n int, window time.Duration) {
	f.set(func() { f.limit, f.left, f.window, f.reset = n, n, window, time.Time{} })
}

// Fail puts faults before the answers, each for one request, in order.
func (f *Forge) Fail(faults ...ForgeFault) { f.set(func() { f.faults = append(f.faults, faults...) }) }

// Heal takes back the faults that are left.
func (f *Forge) Heal() { f.set(func() { f.faults = nil }) }

func (f *Forge) set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// Requests returns what was asked so far.
func (f *Forge) Requests() []ForgeRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// A ForgePull is a pull request of a [Forge].
type ForgePull struct {
	f    *Forge
	repo string
	n    int
	data map[string]any
	head string

	line, talk, reviews []map[string]any
	checks, statuses    map[string][]map[string]any // by commit
}

// Pull opens a pull request of a repository, owner/name, with a head commit.
func (f *Forge) Pull(repo string, number int, head string) *ForgePull {
	p := &ForgePull{f: f, repo: repo, n: number, head: head, checks: map[string][]map[string]any{}, statuses: map[string][]map[string]any{},
		data: map[string]any{"number": number, "state": "open", "merged": false, "html_url": fmt.Sprintf("https://forge.test/%s/pull/%d", repo, number)}}
	f.set(func() { f.pulls[fmt.Sprintf("%s/%d", repo, number)] = p })
	return p
}

// add puts a thing into a list, with an ID and the times that it has.
func (p *ForgePull) add(list *[]map[string]any, thing map[string]any, times ...string) (id int64) {
	p.f.set(func() {
		p.f.lastID++
		id = p.f.lastID
		thing["id"], thing["html_url"] = id, fmt.Sprintf("https://forge.test/%s/pull/%d#%d", p.repo, p.n, id)
		for _, name := range times {
			thing[name] = p.f.stamp()
		}
		*list = append(*list, thing)
	})
	return id
}

func (f *Forge) stamp() string { return time.Now().UTC().Format(time.RFC3339) }

func account(name string) any {
	if name == "" {
		return nil
	}
	return map[string]any{"login": name}
}

// Comment adds one to the conversation and returns its ID.
func (p *ForgePull) Comment(author, body string) int64 {
	return p.add(&p.talk, map[string]any{"user": account(author), "body": body}, "created_at", "updated_at")
}

// ReviewComment adds one on a line of a file, and returns its ID.
func (p *ForgePull) ReviewComment(author, path string, line int, body string) int64 {
	return p.add(&p.line, map[string]any{"user": account(author), "body": body, "path": path, "line": line, "commit_id": p.head}, "created_at", "updated_at")
}

// Review adds a review, in a state as in APPROVED, and returns its ID.
func (p *ForgePull) Review(author, state, body string) int64 {
	return p.add(&p.reviews, map[string]any{"user": account(author), "state": state, "body": body, "commit_id": p.head}, "submitted_at")
}

// Edit gives a comment or review another text.
func (p *ForgePull) Edit(id int64, body string) {
	p.change(id, func(thing map[string]any) { thing["body"], thing["updated_at"] = body, p.f.stamp() })
}

// Touch changes when a comment was changed, and nothing else of it.
func (p *ForgePull) Touch(id int64) {
	p.change(id, func(thing map[string]any) { thing["updated_at"] = p.f.stamp() })
}

// Delete removes a comment or review.
func (p *ForgePull) Delete(id int64) {
	p.f.set(func() {
		for _, list := range []*[]map[string]any{&p.line, &p.talk, &p.reviews} {
			*list = slices.DeleteFunc(*list, func(m map[string]any) bool { return m["id"] == id })
		}
	})
}

func (p *ForgePull) change(id int64, do func(map[string]any)) {
	p.f.set(func() {
		for _, thing := range slices.Concat(p.line, p.talk, p.reviews) {
			if thing["id"] == id {
				do(thing)
			}
		}
	})
}

// Check adds a check run of a commit, or changes the one of this name, and returns
// its ID. Without a conclusion it is under way.
func (p *ForgePull) Check(sha, name, conclusion, summary string) (id int64) {
	p.f.set(func() {
		runs := p.checks[sha]
		i := slices.IndexFunc(runs, func(m map[string]any) bool { return m["name"] == name })
		if i < 0 {
			p.f.lastID++
			runs, i = append(runs, map[string]any{"id": p.f.lastID, "name": name, "head_sha": sha, "html_url": fmt.Sprintf("https://forge.test/%s/runs/%d", p.repo, p.f.lastID)}), len(runs)
		}
		run := runs[i]
		id = run["id"].(int64)
		run["status"], run["conclusion"], run["completed_at"] = "in_progress", nil, nil
		if conclusion != "" {
			run["status"], run["conclusion"], run["completed_at"] = "completed", conclusion, p.f.stamp()
		}
		run["output"] = map[string]any{"title": nil, "summary": summary}
		p.checks[sha] = runs
	})
	return id
}

// Status reports a status of a commit: pending, success, failure or error.
func (p *ForgePull) Status(sha, context, state, description string) {
	p.f.set(func() {
		p.f.lastID++
		p.statuses[sha] = append(slices.DeleteFunc(p.statuses[sha], func(m map[string]any) bool { return m["context"] == context }), map[string]any{
			"id": p.f.lastID, "context": context, "state": state, "description": description, "updated_at": p.f.stamp()})
	})
}

// Push gives the pull request another head commit.
func (p *ForgePull) Push(sha string) { p.f.set(func() { p.head = sha }) }

// Merge ends the pull request.
func (p *ForgePull) Merge(by string) {
	p.f.set(func() {
		p.data["state"], p.data["merged"], p.data["merged_by"] = "closed", true, account(by)
		p.data["merged_at"], p.data["closed_at"] = p.f.stamp(), p.f.stamp()
	})
}

// Close ends the pull request without a merge.
func (p *ForgePull) Close() {
	p.f.set(func() { p.data["state"], p.data["closed_at"] = "closed", p.f.stamp() })
}

// ServeHTTP implements [http.Handler].
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	status, body := f.answer(w, r)
	f.requests = append(f.requests, ForgeRequest{Path: r.URL.RequestURI(), Header: r.Header.Clone(), Status: status, At: time.Now()})
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil && status != http.StatusNotModified {
		f.t.Logf("answer %s: %v", r.URL, err)
	}
}

func (f *Forge) answer(w http.ResponseWriter, r *http.Request) (status int, body []byte) {
	for i, fault := range f.faults {
		if strings.Contains(r.URL.Path, fault.Path) {
			if !fault.Always {
				f.faults = slices.Delete(f.faults, i, i+1)
			}
			for name, value := range fault.Header {
				w.Header().Set(name, value)
			}
			return fault.Status, []byte(fault.Body)
		}
	}
	if f.token != "" && r.Header.Get("Authorization") != "Bearer "+f.token {
		return http.StatusUnauthorized, message("Bad credentials")
	}
	if f.poll > 0 {
		w.Header().Set("X-Poll-Interval", strconv.Itoa(int(f.poll.Seconds())))
	}
	if !f.allowed(w.Header()) {
		return http.StatusForbidden, message("API rate limit exceeded for user ID 1.")
	}
	value, ok := f.find(w.Header(), r)
	if !ok {
		return http.StatusNotFound, message("Not Found")
	}
	body, err := json.Marshal(value)
	if err != nil {
		f.t.Errorf("encode an answer: %v", err)
	}
	sum := sha256.Sum256(body)
	etag := `W/"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.Header().Del("Link") // no client may rely on it
		if r.Header.Get("Authorization") == "" {
			f.count(w.Header(), 1)
		}
		f.count(w.Header(), 0)
		return http.StatusNotModified, nil
	}
	f.count(w.Header(), 1)
	return http.StatusOK, body
}

func message(text string) []byte { return fmt.Appendf(nil, `{"message":%q}`, text) }

// allowed reports whether the limit has room for a request.
func (f *Forge) allowed(h http.Header) bool {
	if f.limit == 0 {
		return true
	}
	if now := time.Now(); !now.Before(f.reset) {
		f.left, f.reset = f.limit, now.Truncate(time.Second).Add(f.window)
	}
	f.count(h, 0)
	return f.left > 0
}

func (f *Forge) count(h http.Header, n int) {
	if f.limit == 0 {
		return
	}
	f.left -= n
	h.Set("X-RateLimit-Limit", strconv.Itoa(f.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(f.left))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(f.reset.Unix(), 10))
}

// find returns what a path names, cut to the page that is asked for.
func (f *Forge) find(h http.Header, r *http.Request) (any, bool) {
	seg := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, "/api/v3"), "/"), "/")
	if r.Method != http.MethodGet || len(seg) < 5 || seg[0] != "repos" {
		return nil, false
	}
	repo, what := seg[1]+"/"+seg[2], strings.Join(slices.Concat(seg[3:4], seg[5:]), "/")
	if seg[3] == "commits" {
		for _, p := range f.pulls {
			if p.repo == repo && (p.head == seg[4] || p.checks[seg[4]] != nil || p.statuses[seg[4]] != nil) {
				return p.ofCommit(h, r, what, seg[4])
			}
		}
		return nil, false
	}
	p := f.pulls[repo+"/"+seg[4]]
	if p == nil {
		return nil, false
	}
	switch what {
	case "pulls":
		p.data["head"] = map[string]any{"sha": p.head}
		return p.data, true
	case "pulls/comments":
		return f.page(h, r, p.line), true
	case "pulls/reviews":
		return f.page(h, r, p.reviews), true
	case "issues/comments":
		return f.page(h, r, p.talk), true
	}
	return nil, false
}

func (p *ForgePull) ofCommit(h http.Header, r *http.Request, what, sha string) (any, bool) {
	switch what {
	case "commits/check-runs":
		return map[string]any{"total_count": len(p.checks[sha]), "check_runs": p.f.page(h, r, p.checks[sha])}, true
	case "commits/status":
		return map[string]any{"sha": sha, "total_count": len(p.statuses[sha]), "statuses": p.f.page(h, r, p.statuses[sha])}, true
	}
	return nil, false
}

// page cuts all to a page, and links to the next.
func (f *Forge) page(h http.Header, r *http.Request, all []map[string]any) []map[string]any {
	q := r.URL.Query()
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(q.Get(name)); err == nil && n > 0 {
			return n
		}
		return otherwise
	}
	size, n := min(number("per_page", 30), f.pageSize), number("page", 1)
	from, to := min((n-1)*size, len(all)), min(n*size, len(all))
	link := func(rel string, n int) string {
		q.Set("page", strconv.Itoa(n))
		u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: q.Encode()}
		if r.URL.Scheme != "" {
			u.Scheme = r.URL.Scheme
		}
		return fmt.Sprintf("<%s>; rel=%q", u.String(), rel)
	}
	var links []string
	if n > 1 {
		links = append(links, link("prev", n-1))
	}
	if to < len(all) {
		links = append(links, link("next", n+1), link("last", (len(all)+size-1)/size))
	}
	if links != nil {
		h.Set("Link", strings.Join(links, ", "))
	}
	return append([]map[string]any{}, all[from:to]...)
}
