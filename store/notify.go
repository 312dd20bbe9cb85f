package store

import (
	"path/filepath"
	"strings"
	"sync"
)

// notices is one for the process, because the descriptor behind it must be: the
// kernel allows a user 128 of them. It is empty while nobody watches.
var notices = notifier{open: openEyes}

// A notifier tells watches which files below their directory have changed. It
// hears of that from the writers of this process and, if it has eyes, from the
// kernel.
type notifier struct {
	open func(*notifier) *eyes

	mu   sync.Mutex
	subs map[*sub]bool
	eyes *eyes // nil: nobody watches, or the kernel has none to give
}

// A sub is one watch's list of what to look at.
type sub struct {
	dir  string
	wake chan struct{} // capacity 1

	mu    sync.Mutex
	files map[string]bool
	all   bool
}

func (n *notifier) subscribe(dir string) *sub {
	s := &sub{dir: dir, wake: make(chan struct{}, 1), files: map[string]bool{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.subs == nil {
		n.subs = map[*sub]bool{}
	}
	n.subs[s] = true
	if n.eyes == nil {
		n.eyes = n.open(n)
	}
	return s
}

// unsubscribe ends a subscription. With the last one the descriptor goes.
func (n *notifier) unsubscribe(s *sub) {
	n.mu.Lock()
	delete(n.subs, s)
	var last *eyes
	if len(n.subs) == 0 {
		last, n.eyes = n.eyes, nil
	}
	n.mu.Unlock()
	last.close() // its goroutine may be about to tell
}

// enter has the kernel tell of changes in dir and reports whether it does. A
// directory that is not there is seen to come by its parent.
func (n *notifier) enter(dir string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.eyes.watch(dir)
}

// tell has those who watch path look at it.
func (n *notifier) tell(path string) {
	n.each(func(s *sub) {
		if under(path, s.dir) {
			s.add(path, false)
		}
	})
}

// tellDir has those who watch something in dir, or dir is in, look at all.
func (n *notifier) tellDir(dir string) {
	n.each(func(s *sub) {
		if under(dir, s.dir) || under(s.dir, dir) {
			s.add(dir, true)
		}
	})
}

// tellAll has everybody look at all: notices were lost.
func (n *notifier) tellAll() { n.each(func(s *sub) { s.add("", true) }) }

func (n *notifier) each(f func(*sub)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for s := range n.subs {
		f(s)
	}
}

func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

func (s *sub) add(path string, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all = s.all || all; !all {
		s.files[path] = true
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sub) take() (files []string, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.files {
		files = append(files, f)
	}
	all = s.all
	clear(s.files)
	s.all = false
	return files, all
}
