package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/budget"
	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
	"github.com/troupe-sh/troupe/internal/cli"
	"github.com/troupe-sh/troupe/internal/control"
	"github.com/troupe-sh/troupe/internal/line"
	"github.com/troupe-sh/troupe/internal/statefile"
	"github.com/troupe-sh/troupe/permission"
	"github.com/troupe-sh/troupe/session"
)

var formats = []string{"text", "json", streamJSON}

func modeNames() (names []string) {
	for _, m := range permission.Modes() {
		names = append(names, string(m))
	}
	return names
}

// run answers one prompt: the way of `troupe -p`.
func (p *program) run(ctx context.Context, f *flags, args []string) error {
	if !f.print && f.input != streamJSON && line.IsTerminal(p.in) && line.IsTerminal(p.out) {
		return p.sit(ctx, f, args)
	}
	if err := f.check(args); err != nil {
		return err
	}
	if f.input == streamJSON {
		return p.control(ctx, f, p.in)
	}
	prompt, err := p.prompt(ctx, strings.Join(args, " "))
	if err != nil {
		return err
	}
	if f.partial { // what no log has comes by the control protocol
		return p.control(ctx, f, control.Prompt(prompt))
	}
	s, models, err := p.open(ctx, f, func(o *host.Options) { o.Tell = p.tell })
	if err != nil {
		return err
	}
	for _, w := range s.Warnings {
		p.say(w)
	}
	var outcome cli.Outcome
	if err = say(ctx, s, prompt); err == nil {
		outcome, err = p.watch(ctx, f, s, models)
	}
	if cerr := s.Close(); cerr != nil {
		err = errors.Join(err, cerr)
	}
	if err != nil {
		return &failure{exitFailed, err}
	}
	if outcome.Ended.Reason != troupe.Done {
		return &failure{code: exitFailed}
	}
	return nil
}

// say gives the session a prompt, or does what it commands.
func say(ctx context.Context, s *host.Session, prompt string) error {
	if instructions, ok := strings.CutPrefix(prompt, "/compact"); ok && (instructions == "" || strings.ContainsAny(instructions[:1], " \n")) {
		s.Compact(strings.TrimSpace(instructions))
		return nil
	}
	return s.Send(ctx, prompt)
}

// check reports flags that make no sense.
func (f *flags) check(args []string) error {
	if err := f.checkControl(args); err != nil {
		return err
	}
	switch {
	case f.input == streamJSON: // prints, whether it says so or not
	case !f.print && len(args) == 0:
		return errors.New("what is to be done? Say it with: troupe -p \"your prompt\" (troupe -h shows all flags, troupe demo shows it at work)")
	case !f.print:
		return fmt.Errorf("to have this prompt answered say: troupe -p %q", strings.Join(args, " "))
	case !slices.Contains(formats, f.output):
		return fmt.Errorf("--output-format %q: want %s", f.output, strings.Join(formats, ", "))
	}
	return f.checkSession()
}

// checkSession reports flags of a session that make no sense.
func (f *flags) checkSession() error {
	switch {
	case f.turns < 0:
		return fmt.Errorf("--max-turns %d: want a positive number", f.turns)
	case f.tokens < 0:
		return fmt.Errorf("--max-tokens %d: want a positive number", f.tokens)
	case f.dollars < 0 || math.IsNaN(f.dollars) || math.IsInf(f.dollars, 0):
		return fmt.Errorf("--max-budget-usd %v: want a positive number of dollars, as in 2.50", f.dollars)
	case f.time < 0:
		return fmt.Errorf("--max-time %s: want a positive duration, as in 90s or 1h30m", f.time)
	case f.resume != "" && f.resumeLast:
		return errors.New("--resume and --continue exclude each other")
	case f.fork && f.resume == "" && !f.resumeLast:
		return errors.New("--fork-session needs --resume or --continue")
	case f.session != "" && (f.resume != "" || f.resumeLast) && !f.fork:
		return errors.New("--session-id names a new session: with --resume or --continue it needs --fork-session")
	case f.passing && !f.print && f.input != streamJSON:
		return errors.New("--no-session-persistence needs -p")
	case f.passing && !f.fork && (f.resume != "" || f.resumeLast):
		return errors.New("--no-session-persistence removes the session at the end: with --resume or --continue it needs --fork-session")
	case f.skip && f.mode != "" && f.mode != string(permission.Bypass):
		return errors.New("--dangerously-skip-permissions and --permission-mode exclude each other")
	}
	if f.session != "" {
		id, err := uuid.Parse(f.session)
		if err != nil || id.String() != strings.ToLower(f.session) {
			return fmt.Errorf("--session-id %q: want a UUID such as %s", f.session, uuid.NewString())
		}
		f.session = id.String()
	}
	return nil
}

// offered are the tools that agents can have; nil is all of them.
func (f *flags) offered() []string {
	if !f.set.Changed("tools") || slices.Equal(f.tools, list{"default"}) {
		return nil
	}
	return append([]string{}, f.tools...)
}

func (f *flags) limits() config.Limits {
	return config.Limits{Dollars: f.dollars, Tokens: f.tokens, Time: f.time}
}

func limited(l config.Limits) host.Limits {
	return host.Limits{Limits: budget.Limits{Tokens: l.Tokens, Dollars: l.Dollars}, Time: l.Time}
}

// longestPrompt is in bytes. No model reads as much; what is longer is a mistake.
const longestPrompt = 16 << 20

// patience is how long a prompt waits for more on stdin.
const patience = time.Second

// prompt joins what was said as an argument with what is on stdin. An open pipe
// into which nobody writes must not hold up a prompt that is there.
func (p *program) prompt(ctx context.Context, arg string) (string, error) {
	piped := ""
	if !line.IsTerminal(p.in) {
		var err error
		if piped, err = p.readIn(ctx, arg != ""); err != nil {
			return "", err
		}
	}
	parts := slices.DeleteFunc([]string{arg, piped}, func(s string) bool { return strings.TrimSpace(s) == "" })
	if len(parts) == 0 {
		return "", errors.New("the prompt is empty: give it as an argument or on stdin, as in: troupe -p \"your prompt\" (it stands before lists of rules, or after --)")
	}
	return strings.Join(parts, "\n\n"), nil
}

func (p *program) readIn(ctx context.Context, havePrompt bool) (string, error) {
	type part struct {
		text []byte
		err  error
	}
	first, all := make(chan struct{}), make(chan part, 1)
	go func() { // ends with the stream; a program that goes on without it does not wait
		var b [1]byte
		n, err := io.ReadFull(p.in, b[:])
		close(first)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
				err = nil
			}
			all <- part{nil, err}
			return
		}
		rest, err := io.ReadAll(io.LimitReader(p.in, longestPrompt))
		if err == nil && len(rest) == longestPrompt {
			err = fmt.Errorf("it is longer than %d MB; say in which file the text is instead", longestPrompt>>20)
		}
		all <- part{append(b[:n:n], rest...), err}
	}()
	if havePrompt {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-first:
		case <-timer.C:
			fmt.Fprintln(p.notes, "troupe: stdin is open, but nothing comes; going on without it (</dev/null closes it)")
			return "", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	select {
	case got := <-all:
		if got.err != nil {
			return "", fmt.Errorf("read the prompt from stdin: %w", got.err)
		}
		return string(got.text), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// open makes the session that the flags ask for; face adds its part to the
// options.
func (p *program) open(ctx context.Context, f *flags, face func(*host.Options)) (*host.Session, *host.Models, error) {
	home, user, err := p.homes()
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, nil, fmt.Errorf("the working directory: %w", err)
	}
	o := host.Options{Home: home, UserHome: user, Agent: f.agent, Append: f.add, Turns: f.turns, Fallback: f.fallback, Fork: f.fork, ID: f.session,
		Env: p.env, Now: time.Now, NewID: uuid.NewString, System: f.system}
	o.Effort, o.Tools, o.Passing = f.effort, f.offered(), f.passing
	if o.Coordinator, err = p.coordinating(f); err != nil {
		return nil, nil, err
	}
	if err := f.absolute(); err != nil {
		return nil, nil, err
	}
	if o.Resume, err = resumed(f, home, dir); err != nil {
		return nil, nil, err
	}
	if o.Resume != nil {
		dir = o.Resume.Project
	}
	if err := p.offered(ctx, f, home, user, dir); err != nil {
		return nil, nil, err
	}
	if o.Config, err = p.config(f, home, user, dir); err != nil {
		return nil, nil, err
	}
	if err := p.mode(f, &o); err != nil {
		return nil, nil, err
	}
	for _, d := range o.Config.Dirs {
		o.Also = append(o.Also, d.Text)
	}
	o.Limits, o.Each = limited(o.Config.Limits.And(f.limits())), limited(o.Config.Each)
	if o.Crew, p.patience, err = p.crew(f, o.Config.Crew); err != nil {
		return nil, nil, err
	}
	models := p.models(o.Config)
	if o.Model, err = p.model(ctx, f, &o, models); err != nil {
		return nil, nil, err
	}
	o.Models, o.Secrets = models, models.Secrets()
	if o.Launcher, err = os.Executable(); err != nil {
		o.Launcher = "" // then bubblewrap alone can confine commands
	}
	face(&o)
	s, err := host.Open(ctx, o)
	if errors.Is(err, statefile.ErrFull) { // nobody used anything in a wrong way
		return nil, nil, &failure{exitFailed, err}
	}
	if err != nil {
		return nil, nil, err
	}
	return s, models, nil
}

// resumed finds the session to take up again; nil is none.
func resumed(f *flags, home, dir string) (*session.Info, error) {
	var info session.Info
	var err error
	switch {
	case f.resumeLast:
		info, err = host.Latest(home, dir)
	case f.resume != "":
		info, err = session.Find(host.Sessions(home), strings.ToLower(f.resume))
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Project == "" { // its first record is lost
		info.Project = dir
	}
	if _, err := os.Stat(info.Project); err != nil {
		return nil, fmt.Errorf("session %s works in a directory that cannot be used: %w", info.ID, err)
	}
	return &info, nil
}

// offered has the person at the terminal, if there is one, say whether the
// directory is to be trusted, before its settings are taken.
func (p *program) offered(ctx context.Context, f *flags, home, user, dir string) error {
	if p.offer == nil {
		return nil
	}
	c, err := p.load(f, home, user, dir)
	if err != nil {
		return err
	}
	_, err = config.Offer(ctx, home, c, p.offer)
	return err
}

// config loads the configuration for dir and tells what is wrong with it.
func (p *program) config(f *flags, home, user, dir string) (*config.Config, error) {
	c, err := p.load(f, home, user, dir)
	if err != nil {
		return nil, err
	}
	for _, dir := range f.dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--add-dir %s: there is no such directory", dir)
		}
	}
	for effect, rules := range map[troupe.Effect]list{troupe.Allow: f.allowed, troupe.Deny: f.forbidden} {
		for _, r := range rules {
			if _, err := permission.ParseRule(effect, r, permission.Origin{Source: config.CommandLine, Root: c.Dir, Home: user}); err != nil {
				return nil, err
			}
			c.Rules = append(c.Rules, config.RuleText{Text: r, Effect: effect, Source: config.CommandLine, Root: c.Dir})
		}
	}
	for _, line := range slices.Concat(c.Warnings, texts(c.Problems), c.Unused) {
		p.say(line)
	}
	return c, nil
}

func (p *program) mode(f *flags, o *host.Options) (err error) {
	switch {
	case f.skip:
		o.Mode = permission.Bypass
	case f.mode != "":
		if o.Mode, err = permission.ParseMode(f.mode); err != nil {
			return fmt.Errorf("--permission-mode: %w", err)
		}
	}
	return nil
}

// model is the full name of the model that a session begins or goes on with; ""
// is the one that it had.
func (p *program) model(ctx context.Context, f *flags, o *host.Options, models *host.Models) (string, error) {
	set := o.Config.Model
	wanted := []string{f.model, p.lookup("TROUPE_MODEL"), set.Text}
	switch {
	case o.Config.IsManaged(set) && f.model != "" && f.model != set.Text:
		return "", fmt.Errorf("--model %s: %s sets the model %s", f.model, set.Source, set.Text)
	case o.Config.IsManaged(set):
		wanted = []string{set.Text}
	case o.Resume != nil && f.model == "" && o.Resume.Model != "":
		return "", nil
	}
	name, err := models.Choose(wanted...)
	if err != nil {
		return "", p.unnamed(ctx, err)
	}
	return name, nil
}

// watch lets the session work and prints what it does.
func (p *program) watch(ctx context.Context, f *flags, s *host.Session, models *host.Models) (cli.Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tally := &cli.Tally{Price: models.Price, Model: s.Begun().Request.Model}
	face, err := p.face(f, s, models, tally)
	if err != nil {
		return cli.Outcome{}, err
	}
	start := time.Now()
	untold := p.tasks(ctx, s, face, cancel)
	// The face follows the logs at its own pace, until there is nothing to come.
	printed := make(chan error, 1)
	go func() { printed <- follow(s.Follow(context.WithoutCancel(ctx)), tally, face, cancel) }()
	end, stopped, _ := s.Answer(ctx, p.patience) // why it ended badly is in the end, too
	took, broken := time.Since(start), <-printed
	if err := untold(); broken == nil {
		broken = err
	}
	if why := tally.Uncompacted; why != "" && end.Reason == troupe.Done && end.Turns == 0 { // that was all there was to do
		end.Reason, end.Err = troupe.Failed, "the conversation stays as it is: "+why
	}
	outcome := cli.Outcome{Ended: end, Tally: tally, Took: took, Stopped: stopped}
	if broken != nil {
		return outcome, broken
	}
	return outcome, face.Finish(outcome)
}

// tasks has a stream tell of what works in the background. The returned func ends
// that, when all of it is told.
func (p *program) tasks(ctx context.Context, s *host.Session, face cli.Face, interrupt func(error)) (end func() error) {
	stream, ok := face.(*cli.Stream)
	if !ok {
		return func() error { return nil }
	}
	stream.WatchTasks(s.Tasks, time.Now)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	told := make(chan error, 1)
	go func() { // ends with stop, which the returned func calls
		err := stream.FollowTasks(ctx)
		if err != nil {
			interrupt(troupe.ErrInterrupted)
		}
		told <- err
	}()
	return func() error { stop(); return <-told }
}

// follow shows the face all records. A face that cannot print any more interrupts
// the run.
func follow(records func(func(session.Record, error) bool), tally *cli.Tally, face cli.Face, interrupt func(error)) (broken error) {
	for r, err := range records {
		if err != nil {
			continue // damage of old records was told when the session was opened
		}
		tally.Add(r)
		if broken == nil {
			if broken = face.Record(r); broken != nil {
				interrupt(troupe.ErrInterrupted)
			}
		}
	}
	return broken
}

// face is what the flags ask for. On a terminal, what agents say cannot move
// the cursor.
func (p *program) face(f *flags, s *host.Session, models *host.Models, tally *cli.Tally) (cli.Face, error) {
	out, notes := p.out, p.notes
	if line.IsTerminal(out) {
		out = cli.Screen(out)
	}
	var face cli.Face
	switch f.output {
	case "json":
		face = cli.JSON{Out: p.out, Session: s.ID}
	case "stream-json":
		stream := &cli.Stream{Out: p.out, Tally: tally, About: about(s, models)}
		return stream, stream.Begin()
	default:
		face = cli.Text{Out: out, Notes: notes, Session: s.ID}
	}
	if f.verbose {
		face = verbose{face, &cli.Timeline{Out: notes, Tally: tally, Plain: !line.IsTerminal(notes)}}
	}
	return face, nil
}

// verbose is a face with a timeline beside it.
type verbose struct {
	cli.Face
	timeline *cli.Timeline
}

func (v verbose) Record(r session.Record) error {
	return errors.Join(v.timeline.Record(r), v.Face.Record(r))
}

func about(s *host.Session, models *host.Models) cli.About {
	state := s.Begun()
	a := cli.About{Session: s.ID, Dir: state.Place.Dir, Model: state.Request.Model, Mode: state.Mode, Version: versionText(),
		Key: models.KeyName(state.Request.Model), Agents: s.Agents()}
	for _, t := range state.Request.Tools {
		a.Tools = append(a.Tools, t.Name)
	}
	return a
}

// absolute makes the paths among the flags those that the user sees from where
// the command was started, whatever directory a session works in.
func (f *flags) absolute() (err error) {
	if f.settings != "" && !strings.HasPrefix(strings.TrimSpace(f.settings), "{") {
		if f.settings, err = abs(f.settings); err != nil {
			return err
		}
	}
	for i := range f.dirs {
		if f.dirs[i], err = abs(f.dirs[i]); err != nil {
			return err
		}
	}
	return nil
}

// abs makes a path of the command line absolute.
func abs(path string) (string, error) {
	out, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}
