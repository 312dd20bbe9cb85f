package forge

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/internal/schema"
)

//go:embed subscribe.md
var subscribeDoc string

// ToolName is the name of the tool that [Subscribe] is.
const ToolName = "subscribe_pr_activity"

// Subscribe is the tool by which an agent has itself told of what happens to a
// pull request. The watching is a task in the background, which Start starts. It
// is safe for concurrent use. All fields but Interval and Stopped must be set.
type Subscribe struct {
	// Open returns the API, the same at each call, or why there is none.
	Open     func() (*API, error)
	Interval time.Duration // as in Config

	// Start runs a task in the background and returns its ID. It calls run once,
	// or returns an error and does not. The result or the error of run is the
	// task's; what run writes to out is for people.
	Start func(ctx context.Context, c *troupe.Call, title string, run func(ctx context.Context, out io.Writer) (string, error)) (id string, err error)
	// Stop ends the task with this ID: its context ends with the cause Stopped.
	// A task that has ended already is no error.
	Stop func(ctx context.Context, id string) error
	// Stopped is the cause by which a task knows that it was ended for good, and not
	// with the process: then the subscription is forgotten.
	Stopped error

	// Tell is that of Config.
	Tell func(ctx context.Context, e Event) error
	// Load and Save are those of Config, for the record that has this key, one
	// segment of a store's key. To save nil is to remove.
	Load func(ctx context.Context, key string) ([]byte, error)
	Save func(ctx context.Context, key string, record []byte) error

	mu     sync.Mutex
	active map[string]*subscription
}

// A subscription is one that is under way, or about to be.
type subscription struct {
	id    string        // of its task; "" until that is started
	ended chan struct{} // closed when its task is at its end
}

type subscribeInput struct {
	Repository  string `json:"repository" jsonschema:"owner/name"`
	PullRequest int    `json:"pull_request" jsonschema:"the number of the pull request"`
	Unsubscribe bool   `json:"unsubscribe,omitempty" jsonschema:"true ends the subscription"`
}

type subscribeData struct {
	Repository  string `json:"repository"`
	PullRequest int    `json:"pull_request"`
	Subscribed  bool   `json:"subscribed"`
	TaskID      string `json:"taskId,omitempty"`
}

// Spec implements [troupe.Tool].
func (*Subscribe) Spec() troupe.ToolSpec {
	return troupe.ToolSpec{Name: ToolName, Description: strings.TrimSpace(subscribeDoc), Schema: schema.Of[subscribeInput]()}
}

// Call implements [troupe.Tool].
func (s *Subscribe) Call(ctx context.Context, c *troupe.Call) (troupe.Result, error) {
	var in subscribeInput
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return troupe.Result{}, fmt.Errorf("the input of %s: give repository as a text and pull_request as a number: %w", ToolName, err)
	}
	if err := valid(in.Repository, in.PullRequest); err != nil {
		return troupe.Result{}, err
	}
	api, err := s.Open()
	if err != nil {
		return troupe.Result{}, err
	}
	data := subscribeData{Repository: in.Repository, PullRequest: in.PullRequest}
	text := ""
	if in.Unsubscribe {
		text, err = s.leave(ctx, api, in)
	} else {
		text, data.TaskID, err = s.enter(ctx, c, api, in)
		data.Subscribed = err == nil
	}
	if err != nil {
		return troupe.Result{}, err
	}
	res := troupe.Answer(text)
	if res.Data, err = troupe.Encode(data); err != nil {
		return troupe.Result{}, fmt.Errorf("describe the result: %w", err)
	}
	return res, nil
}

// Resume starts the subscriptions again that a session had when its process
// ended: records are those that Save was given last, without those that were
// removed. What was missed is told. A pull request that cannot be read any more is
// a task that fails. c is passed to Start. The first error of a record or of Start
// is returned when all have been tried.
func (s *Subscribe) Resume(ctx context.Context, c *troupe.Call, records ...[]byte) error {
	api, err := s.Open()
	if err != nil {
		return err
	}
	var first error
	for _, raw := range records {
		r, err := decodeRecord(raw)
		if err == nil {
			err = valid(r.Repository, r.Number)
		}
		if err == nil {
			if sub := s.claim(api.key(r.Repository, r.Number)); sub != nil {
				_, err = s.start(ctx, c, api, sub, r.Repository, r.Number)
			}
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// enter subscribes. What is wrong with the pull request or the token is told
// here, and not by a task that fails a moment later.
func (s *Subscribe) enter(ctx context.Context, c *troupe.Call, api *API, in subscribeInput) (text, id string, err error) {
	key := api.key(in.Repository, in.PullRequest)
	sub := s.claim(key)
	if sub == nil {
		return "", "", fmt.Errorf("you are subscribed to %s already; its news come by themselves", name(in.Repository, in.PullRequest))
	}
	state, err := api.state(ctx, in.Repository, in.PullRequest)
	if err == nil && state.State == "closed" {
		err = fmt.Errorf("%s is closed, nothing more will come of it", name(in.Repository, in.PullRequest))
	}
	if err != nil {
		s.release(key, sub)
		return "", "", err
	}
	if id, err = s.start(ctx, c, api, sub, in.Repository, in.PullRequest); err != nil {
		return "", "", err
	}
	return fmt.Sprintf("Subscribed to %s, which is open, its head commit %s; the task is %s. What is new comes by itself, in an element pr-activity; do not wait for it.",
		name(in.Repository, in.PullRequest), short(state.Head.SHA), id), id, nil
}

// state asks for a pull request once.
func (a *API) state(ctx context.Context, repo string, n int) (p pull, err error) {
	ans, err := a.get(ctx, a.address(repo, fmt.Sprintf("/pulls/%d", n)), "")
	var f *failure
	if errors.As(err, &f) && f.limited {
		return p, fmt.Errorf("ask for %s: %w; try again in %s", name(repo, n), err, max(f.after.Round(time.Second), time.Second))
	}
	if err == nil {
		err = decodePull(ans.body, &p)
	}
	if err != nil {
		return p, fmt.Errorf("ask for %s: %w", name(repo, n), err)
	}
	return p, nil
}

// start starts the task of a subscription that was claimed.
func (s *Subscribe) start(ctx context.Context, c *troupe.Call, api *API, sub *subscription, repo string, n int) (id string, err error) {
	key := api.key(repo, n)
	id, err = s.Start(ctx, c, "pull request "+name(repo, n), func(ctx context.Context, out io.Writer) (string, error) {
		defer s.release(key, sub)
		return s.run(ctx, Config{API: api, Repository: repo, Number: n, Interval: s.Interval, Out: out,
			Load: func(ctx context.Context) ([]byte, error) { return s.Load(ctx, key) },
			Save: func(ctx context.Context, record []byte) error { return s.Save(ctx, key, record) },
		})
	})
	if err != nil {
		s.release(key, sub)
		return "", fmt.Errorf("watch %s: %w", name(repo, n), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.id = id
	return id, nil
}

// run is the work of a task.
func (s *Subscribe) run(ctx context.Context, c Config) (string, error) {
	told, end := 0, Closed
	c.Tell = func(ctx context.Context, e Event) error {
		if err := s.Tell(ctx, e); err != nil {
			return err
		}
		if told++; e.Kind == Merged {
			end = Merged
		}
		return nil
	}
	err := Watch(ctx, c)
	stopped := err != nil && s.Stopped != nil && errors.Is(context.Cause(ctx), s.Stopped)
	if err == nil || stopped { // the subscription is over, not only the process
		if serr := c.Save(context.WithoutCancel(ctx), nil); serr != nil && err == nil {
			err = fmt.Errorf("remove the record: %w", serr)
		}
	}
	text := fmt.Sprintf("news told: %d", told)
	if err == nil {
		text = fmt.Sprintf("%s is %s; %s", name(c.Repository, c.Number), end, text)
	}
	return text, err
}

// leave unsubscribes. When it returns nothing more is told.
func (s *Subscribe) leave(ctx context.Context, api *API, in subscribeInput) (string, error) {
	what, key := name(in.Repository, in.PullRequest), api.key(in.Repository, in.PullRequest)
	id, ended := s.find(key)
	if ended != nil && id == "" {
		return "", fmt.Errorf("the subscription to %s is just about to begin; unsubscribe in a moment", what)
	}
	record, err := s.Load(ctx, key)
	if err == nil && ended == nil && record == nil {
		err = errors.New("you are not subscribed to it")
	}
	if err == nil && ended != nil {
		err = s.Stop(ctx, id)
	}
	if err == nil && ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil {
		err = s.Save(ctx, key, nil)
	}
	if err != nil {
		return "", fmt.Errorf("unsubscribe from %s: %w", what, err)
	}
	return fmt.Sprintf("Unsubscribed from %s: nothing more of it will be told.", what), nil
}

// claim makes a subscription for key; nil if there is one.
func (s *Subscribe) claim(key string) *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[key] != nil {
		return nil
	}
	if s.active == nil {
		s.active = map[string]*subscription{}
	}
	sub := &subscription{ended: make(chan struct{})}
	s.active[key] = sub
	return sub
}

// find returns the task of the subscription for key, and when that ends; nil if
// there is none.
func (s *Subscribe) find(key string) (id string, ended <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.active[key]
	if sub == nil {
		return "", nil
	}
	return sub.id, sub.ended
}

// release ends a subscription that was claimed.
func (s *Subscribe) release(key string, sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, key)
	close(sub.ended)
}
