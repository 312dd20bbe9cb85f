package gitignore

// A Chain is the rules that hold in one directory of a tree: its own and
// those of the directories above. Rules of a nearer directory outrank those
// of a farther one. A Chain does not change, so that many goroutines can use
// it; nil is a tree without rules.
type Chain struct {
	dir   string // of the tree, with slashes and one at the end; "" is the top
	links []link // the strongest is the last
}

type link struct {
	rules *Rules
	base  int // length of the dir that the rules belong to
}

// Root is the top directory of a tree. The rules given hold for the whole
// tree and yield to those of any file in it, a later one outranks an earlier:
// what core.excludesFile names first, then .git/info/exclude.
func Root(general ...*Rules) *Chain {
	c := &Chain{}
	for _, r := range general {
		c = c.With(r)
	}
	return c
}

// With is the same directory with the rules of its own ignore file on top.
func (c *Chain) With(own *Rules) *Chain {
	if own == nil || len(own.patterns) == 0 {
		return c
	}
	if c == nil {
		c = &Chain{}
	}
	links := append(c.links[:len(c.links):len(c.links)], link{own, len(c.dir)})
	return &Chain{dir: c.dir, links: links}
}

// Enter is the directory called name in this one.
func (c *Chain) Enter(name string) *Chain {
	if c == nil {
		return nil
	}
	return &Chain{dir: c.dir + name + "/", links: c.links}
}

// Match is the verdict on what is called name in this directory. A link to a
// directory is not a directory. Whoever walks a tree does not enter what is
// Ignored; the directories above are not looked at again.
func (c *Chain) Match(name string, isDir bool) Verdict {
	if c == nil {
		return Unmentioned
	}
	path := ""
	for i := len(c.links) - 1; i >= 0; i-- {
		l := c.links[i]
		v := l.rules.match(name, isDir, func() string {
			if path == "" {
				path = c.dir + name
			}
			return path[l.base:]
		})
		if v != Unmentioned {
			return v
		}
	}
	return Unmentioned
}
