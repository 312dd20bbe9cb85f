package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A thing is what the server lists: one comment, one check.
type thing struct {
	key   string // names it among all of the pull request
	rev   string // changes with what counts of it
	quiet bool   // there is nothing to tell of it as it is
	event Event
}

// A list is what is polled of a pull request, page by page.
type list struct {
	name string // for people
	path string // below the repository; %d is the number, %s the head commit
	read func(body []byte) ([]thing, error)
	// optional lists do not exist on every server, or not for every token.
	optional bool
}

func (l list) ofCommit() bool { return strings.Contains(l.path, "%s") }

var lists = []list{
	{name: "comments on lines", path: "/pulls/%d/comments", read: reviewComments},
	{name: "comments", path: "/issues/%d/comments", read: comments},
	{name: "reviews", path: "/pulls/%d/reviews", read: reviews},
	{name: "check runs", path: "/commits/%s/check-runs", read: checkRuns, optional: true},
	{name: "commit statuses", path: "/commits/%s/status", read: statuses, optional: true},
}

type user struct{ Login string }

func (u *user) name() string {
	if u == nil {
		return "ghost" // what the account was deleted of
	}
	return u.Login
}

type pull struct {
	State    string
	Merged   bool
	MergedAt *time.Time `json:"merged_at"`
	ClosedAt *time.Time `json:"closed_at"`
	MergedBy *user      `json:"merged_by"`
	URL      string     `json:"html_url"`
	Head     struct{ SHA string }
}

// end is the event of a pull request that is closed.
func (p pull) end(number int) thing {
	e := Event{Kind: Closed, URL: p.URL, Commit: short(p.Head.SHA)}
	if p.ClosedAt != nil {
		e.Time = *p.ClosedAt
	}
	if p.Merged || p.MergedAt != nil {
		e.Kind = Merged
		if p.MergedBy != nil {
			e.Author = p.MergedBy.Login
		}
	}
	return thing{key: fmt.Sprintf("%s-%d", e.Kind, number), rev: hash(e.Time.String()), event: e}
}

type comment struct {
	ID           int64
	User         *user
	Body         string
	Path         string
	Line         *int
	OriginalLine *int      `json:"original_line"`
	CommitID     string    `json:"commit_id"`
	Created      time.Time `json:"created_at"`
	Updated      time.Time `json:"updated_at"`
	URL          string    `json:"html_url"`
}

func (c comment) thing(kind Kind, letter string) thing {
	e := Event{Kind: kind, Author: c.User.name(), Path: c.Path, Commit: short(c.CommitID), URL: c.URL, Time: later(c.Created, c.Updated), Text: clip(c.Body)}
	for _, n := range []*int{c.OriginalLine, c.Line} {
		if n != nil {
			e.Line = *n
		}
	}
	return thing{key: fmt.Sprintf("%s-%d", letter, c.ID), rev: hash(c.Body), event: e}
}

func reviewComments(body []byte) ([]thing, error) {
	return each(body, func(c comment) thing { return c.thing(ReviewComment, "line") })
}

func comments(body []byte) ([]thing, error) {
	return each(body, func(c comment) thing { return c.thing(Comment, "comment") })
}

type review struct {
	ID        int64
	User      *user
	Body      string
	State     string
	CommitID  string    `json:"commit_id"`
	Submitted time.Time `json:"submitted_at"`
	URL       string    `json:"html_url"`
}

// reviews leaves out those that nobody has handed in. One that only holds
// comments on lines has nothing to tell beside them.
func reviews(body []byte) ([]thing, error) {
	return each(body, func(r review) thing {
		state := strings.ToLower(r.State)
		return thing{
			key: fmt.Sprintf("review-%d", r.ID), rev: hash(state, r.Body),
			quiet: state == "pending" || state == "commented" && strings.TrimSpace(r.Body) == "",
			event: Event{Kind: Review, Author: r.User.name(), State: state, Commit: short(r.CommitID), URL: r.URL, Time: r.Submitted, Text: clip(r.Body)},
		}
	})
}

type checkRun struct {
	ID         int64
	Name       string
	HeadSHA    string `json:"head_sha"`
	Status     string
	Conclusion string
	Completed  time.Time `json:"completed_at"`
	URL        string    `json:"html_url"`
	App        *struct{ Slug string }
	Output     struct{ Title, Summary string }
}

func checkRuns(body []byte) ([]thing, error) {
	var page struct {
		Runs json.RawMessage `json:"check_runs"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}
	return each(page.Runs, func(r checkRun) thing {
		e := Event{Kind: Check, Title: r.Name, State: r.Conclusion, Commit: short(r.HeadSHA), URL: r.URL, Time: r.Completed}
		if r.App != nil {
			e.Author = r.App.Slug
		}
		e.Text = clip(strings.TrimSpace(r.Output.Title + "\n" + r.Output.Summary))
		over := r.Status == "completed"
		return thing{key: fmt.Sprintf("check-%d", r.ID), rev: hash(fmt.Sprint(over), r.Conclusion, r.Completed.String()), quiet: !over, event: e}
	})
}

type status struct {
	ID          int64
	State       string
	Context     string
	Description string
	Target      string    `json:"target_url"`
	Updated     time.Time `json:"updated_at"`
}

// statuses reads the last status of each context. Who reports the same again
// has reported nothing new.
func statuses(body []byte) ([]thing, error) {
	var page struct {
		SHA      string
		Statuses json.RawMessage
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}
	return each(page.Statuses, func(s status) thing {
		return thing{
			key: "status-" + hash(page.SHA, s.Context), rev: hash(s.State, s.Description, s.Target), quiet: s.State == "pending",
			event: Event{Kind: Commit, Title: s.Context, State: s.State, Commit: short(page.SHA), URL: s.Target, Time: s.Updated, Text: clip(s.Description)},
		}
	})
}

// each decodes a list and makes things of what is in it.
func each[T any](body []byte, thing func(T) thing) (out []thing, err error) {
	var all []T
	if len(body) > 0 {
		err = json.Unmarshal(body, &all)
	}
	for _, v := range all {
		out = append(out, thing(v))
	}
	return out, err
}

// hash is short for texts, in letters that a store's key may have.
func hash(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(h.Sum(nil)[:5])
}

func short(sha string) string {
	if len(sha) > 12 {
		return sha[:12]
	}
	return sha
}
