package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model"
)

const (
	interval  = 30 * time.Second
	longest   = 5 * time.Minute // between two tries while the server fails
	perPage   = 100
	maxPages  = 100
	maxKnown  = 6000 // things of a pull request
	batchSize = 8    // events in a record: with what is known they fit into a value of a store
	patience  = 3    // polls that an optional list may fail before it is told
)

// A Config says what [Watch] watches and whom it tells.
type Config struct {
	API        *API
	Repository string // owner/name
	Number     int
	Interval   time.Duration // between two polls; 0 is 30 s. The server may ask for more

	// Tell takes an event. When it returns nil the event is told for good, also
	// if the process dies then. After a restart it may be given the last
	// events once more, and must know them by their IDs.
	Tell func(ctx context.Context, e Event) error
	// Load returns what was given to Save last, nil if there is nothing. Save
	// keeps at most 512 KB for good. Without a record Watch begins anew: what is
	// there already is then not told.
	Load func(ctx context.Context) ([]byte, error)
	Save func(ctx context.Context, record []byte) error

	Out io.Writer // lines for people about what goes on; may be nil
}

// Watch polls a pull request and tells what is new: comments and reviews, also
// edited ones, results of checks and statuses of its head commit, and its end.
// What was there at the first poll is not told. It returns nil when the pull
// request is closed or merged and that was told; else the cause of the end of
// ctx, or what cannot be mended by waiting. Faults of the server and the network,
// and limits of requests, are waited for.
func Watch(ctx context.Context, c Config) error {
	if err := valid(c.Repository, c.Number); err != nil {
		return err
	}
	w := &watch{Config: c, pages: map[string]page{}, missing: map[string]int{}}
	err := w.run(ctx)
	if err != nil && context.Cause(ctx) == nil {
		return fmt.Errorf("watch %s: %w", name(c.Repository, c.Number), err)
	}
	return err
}

var repository = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$`)

// valid checks what an agent has named before it becomes part of an address.
func valid(repo string, number int) error {
	owner, name, _ := strings.Cut(repo, "/")
	if !repository.MatchString(repo) || strings.Trim(owner, ".") == "" || strings.Trim(name, ".") == "" {
		return fmt.Errorf("%q is no repository; name it as in owner/name", oneLine(repo, 100))
	}
	if number < 1 {
		return fmt.Errorf("%d is no pull request; give its number, as in 12", number)
	}
	return nil
}

func name(repo string, number int) string { return fmt.Sprintf("%s#%d", repo, number) }

// key names a pull request of this server. It is a segment of a store's key.
func (a *API) key(repo string, n int) string {
	return "pr-" + hash(a.base.String(), strings.ToLower(repo), fmt.Sprint(n))
}

// A record is what survives the process.
type record struct {
	Version    int
	Repository string
	Number     int
	Head       string
	Read       map[string]bool   // lists that were read whole: what comes now is new
	Known      map[string]string // things, by key: their rev
	Pending    []Event           // those that may not have been told, of what is known
}

const recordVersion = 1

func decodeRecord(raw []byte) (record, error) {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil || r.Version != recordVersion {
		return r, errors.New("what is kept of the subscription cannot be read; unsubscribe and subscribe anew")
	}
	return r, nil
}

// A page is one that was fetched, so that it need not be fetched again.
type page struct {
	etag  string
	next  *url.URL
	count int
}

// news is an event that is to be told, of the thing that it makes known.
type news struct {
	key, rev string
	event    Event
}

type watch struct {
	Config
	rec     record
	changed bool // rec is not as it was saved
	pull    pull
	pages   map[string]page
	missing map[string]int // optional lists: polls in which they could not be read
	news    []news
	asked   int           // requests of the present poll that count for the limit
	wait    time.Duration // that its answers ask for until the next
}

func (w *watch) run(ctx context.Context) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	policy := model.Policy{Longest: longest, Rand: w.API.rand}
	for attempt := 0; ; {
		over, err := w.poll(ctx)
		if over && err == nil {
			return nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		wait := max(cmp.Or(w.Interval, interval), w.wait, w.API.pace(ctx, w.asked))
		var f *failure
		switch {
		case err == nil:
			attempt = 0
		case errors.As(err, &f) && f.temporary:
			attempt++
			wait = policy.Wait(attempt, f.after)
			w.say("%v; asking again in %s", f, wait.Round(time.Second))
		default:
			return err
		}
		if err := model.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// begin takes up the record and tells what a death may have kept from being told.
func (w *watch) begin(ctx context.Context) error {
	raw, err := w.Load(ctx)
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	if raw != nil {
		if w.rec, err = decodeRecord(raw); err != nil {
			return err
		}
	}
	w.rec.Version, w.rec.Repository, w.rec.Number = recordVersion, w.Repository, w.Number
	if w.rec.Known == nil {
		w.rec.Known = map[string]string{}
	}
	if w.rec.Read == nil {
		w.rec.Read = map[string]bool{}
	}
	return w.tell(ctx)
}

// poll looks at everything once. What was found before an error is told.
func (w *watch) poll(ctx context.Context) (over bool, err error) {
	w.asked, w.wait, w.news = 0, 0, nil
	err = w.look(ctx)
	if err == nil && w.pull.State == "closed" {
		over = true
		w.heed(w.pull.end(w.Number))
	}
	if ferr := w.flush(ctx); ferr != nil {
		return false, ferr
	}
	return over, err
}

func (w *watch) look(ctx context.Context) error {
	if err := w.lookAtPull(ctx); err != nil {
		return err
	}
	for _, l := range lists {
		if l.ofCommit() && w.pull.Head.SHA == "" {
			continue
		}
		err := w.lookAt(ctx, l)
		var f *failure
		if l.optional && errors.As(err, &f) && !f.temporary && slices.Contains([]int{403, 404, 422}, f.status) {
			w.lack(l, f)
			continue
		}
		if err != nil {
			return err
		}
		w.missing[l.name] = 0
		if !w.rec.Read[l.name] {
			w.rec.Read[l.name], w.changed = true, true
		}
	}
	return nil
}

// lookAtPull learns whether the pull request is open, and its head commit.
func (w *watch) lookAtPull(ctx context.Context) error {
	u := w.API.address(w.Repository, fmt.Sprintf("/pulls/%d", w.Number))
	a, err := w.get(ctx, u)
	if err != nil || a.unchanged {
		return err
	}
	if err := decodePull(a.body, &w.pull); err != nil {
		return err
	}
	w.pages[u.String()] = page{etag: a.etag}
	if w.rec.Head == w.pull.Head.SHA {
		return nil
	}
	w.rec.Head, w.changed = w.pull.Head.SHA, true
	for u := range w.pages {
		if strings.Contains(u, "/commits/") {
			delete(w.pages, u)
		}
	}
	if len(w.rec.Known) > maxKnown/2 { // results of commits that are not the head any more
		for key := range w.rec.Known {
			if strings.HasPrefix(key, "check-") || strings.HasPrefix(key, "status-") {
				delete(w.rec.Known, key)
			}
		}
	}
	return nil
}

func decodePull(body []byte, p *pull) error {
	*p = pull{}
	if err := json.Unmarshal(body, p); err != nil || p.State == "" {
		return errStrange
	}
	return nil
}

// errStrange is the cause for an answer that is not of such an API.
var errStrange = errors.New("the answer is not that of a GitHub API; check GITHUB_API_URL")

// address is where something of a repository is.
func (a *API) address(repo, path string) *url.URL {
	return a.base.JoinPath("repos", repo, path)
}

func (w *watch) get(ctx context.Context, u *url.URL) (answer, error) {
	a, err := w.API.get(ctx, u, w.pages[u.String()].etag)
	if !a.unchanged || w.API.token == "" { // unchanged is free, but not for nobody
		w.asked++
	}
	w.wait = max(w.wait, a.poll)
	return a, err
}

// lookAt reads all pages of a list and heeds what is in those that changed.
func (w *watch) lookAt(ctx context.Context, l list) error {
	path := fmt.Sprintf(l.path, any(w.Number))
	if l.ofCommit() {
		path = fmt.Sprintf(l.path, url.PathEscape(w.pull.Head.SHA))
	}
	u := w.API.address(w.Repository, path)
	u.RawQuery = fmt.Sprintf("per_page=%d", perPage)
	full := perPage // what a full page has; some servers give less than they are asked for
	for n := 1; u != nil; n++ {
		if n > maxPages {
			return fmt.Errorf("there are more than %d pages of %s, too many to follow", maxPages, l.name)
		}
		a, err := w.get(ctx, u)
		if err != nil {
			return err
		}
		p := w.pages[u.String()]
		if a.unchanged {
			// A page that is full stays the same when another one comes behind it.
			if a.linked {
				p.next = a.next
			}
		} else {
			things, err := l.read(a.body)
			if err != nil {
				return errStrange
			}
			for _, t := range things {
				w.see(l, t)
			}
			p = page{etag: a.etag, next: a.next, count: len(things)}
		}
		w.pages[u.String()] = p
		if n == 1 && p.next != nil {
			full = min(full, max(p.count, 1))
		}
		if u = p.next; u == nil && p.count >= full {
			u = w.API.address(w.Repository, path)
			u.RawQuery = fmt.Sprintf("page=%d&per_page=%d", n+1, perPage)
		}
	}
	return nil
}

// see takes in a thing of a list: at the first reading it is known then, and later
// it is news if it is not known as it is.
func (w *watch) see(l list, t thing) {
	if w.rec.Known[t.key] == t.rev {
		return
	}
	if t.quiet || !w.rec.Read[l.name] {
		w.rec.Known[t.key], w.changed = t.rev, true
		return
	}
	w.heed(t)
}

// heed makes an event of a thing that is not known as it is.
func (w *watch) heed(t thing) {
	old := w.rec.Known[t.key]
	if old == t.rev {
		return
	}
	e := t.event
	e.Repository, e.Number = w.Repository, w.Number
	switch e.Kind {
	case Comment, ReviewComment, Review:
		e.Edited = old != ""
	}
	for _, s := range []*string{&e.Author, &e.Title, &e.State, &e.Path} {
		*s = w.API.mask.Text(oneLine(*s, 300))
	}
	e.URL, e.Text = w.API.mask.Text(oneLine(e.URL, 1000)), w.API.mask.Text(e.Text)
	if now := w.API.now(); e.Time.Unix() <= 0 || e.Time.After(now) {
		e.Time = now
	}
	e.ID = fmt.Sprintf("%016x-%s-%s-%s", e.Time.UnixNano(), w.API.key(w.Repository, w.Number), t.key, t.rev)
	w.news = append(w.news, news{t.key, t.rev, e})
}

// lack counts that an optional list cannot be read, and has it told at last: who
// waits for results must know that none will come.
func (w *watch) lack(l list, f *failure) {
	w.missing[l.name]++
	if w.missing[l.name] != patience {
		return
	}
	w.say("%s cannot be read: %v", l.name, f)
	w.heed(thing{key: "unreadable-" + strings.ReplaceAll(l.name, " ", "-"), rev: hash(http.StatusText(f.status)), event: Event{
		Kind: Unreadable, Title: l.name, Text: fmt.Sprintf("The %s of this pull request cannot be read, so their results are not told: %v", l.name, f)}})
}

// flush tells what the poll has found. Before events are told they are in the
// record, so that they stay the same, whatever becomes of the process and of what
// they are about.
func (w *watch) flush(ctx context.Context) error {
	slices.SortStableFunc(w.news, func(a, b news) int { return a.event.Time.Compare(b.event.Time) })
	for batch := range slices.Chunk(w.news, batchSize) {
		w.rec.Pending = nil
		for _, n := range batch {
			if w.rec.Known[n.key] == n.rev { // listed twice, as pages have moved
				continue
			}
			w.rec.Known[n.key] = n.rev
			w.rec.Pending = append(w.rec.Pending, n.event)
		}
		if err := w.save(ctx); err != nil {
			return err
		}
		if err := w.tell(ctx); err != nil {
			return err
		}
	}
	if !w.changed {
		return nil
	}
	return w.save(ctx)
}

// tell tells what is pending.
func (w *watch) tell(ctx context.Context) error {
	for _, e := range w.rec.Pending {
		if err := w.Tell(ctx, e); err != nil {
			return fmt.Errorf("tell what is new: %w", err)
		}
		w.say("%s %s", e.Kind, e.URL)
	}
	if w.rec.Pending != nil {
		w.rec.Pending, w.changed = nil, true
	}
	return nil
}

func (w *watch) save(ctx context.Context) error {
	if len(w.rec.Known) > maxKnown {
		return fmt.Errorf("it has more than %d comments and results, too many to follow", maxKnown)
	}
	raw, err := troupe.Encode(w.rec)
	if err == nil {
		err = w.Save(ctx, raw)
	}
	if err != nil {
		return fmt.Errorf("keep the record: %w", err)
	}
	w.changed = false
	return nil
}

// say writes a line for people.
func (w *watch) say(format string, args ...any) {
	if w.Out != nil {
		fmt.Fprintf(w.Out, "%s %s\n", w.API.now().Format(time.TimeOnly), oneLine(fmt.Sprintf(format, args...), 400))
	}
}
