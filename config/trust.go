package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// A trustFile is the content of trust.json in the data directory: the roots
// that the user trusts, with links resolved, in order.
type trustFile struct {
	Version int      `json:"version"`
	Roots   []string `json:"roots"`
}

const (
	trustVersion = 1
	maxTrust     = 4 << 20 // bytes
)

// Trusted says whether the user trusts dir, by the store in the data
// directory home. What is trusted is a root and all below it, but for
// repositories of their own in there: a clone in a trusted folder is a
// stranger again. A store that cannot be read trusts nothing.
func Trusted(home, dir string) bool {
	f, err := readTrust(home)
	if err != nil {
		return false
	}
	_, ok := f.covers(dir)
	return ok
}

// Trust stores that the user trusts the repository of dir, or dir itself if it
// is in none, and returns the root that it stored. It waits while another
// process changes the store, until ctx ends.
func Trust(ctx context.Context, home, dir string) (root string, err error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("trust %s: %w", dir, err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return "", fmt.Errorf("trust %s: %w", dir, err)
	}
	root = repositoryRoot(real)
	err = changeTrust(ctx, home, func(f *trustFile) {
		if at, found := slices.BinarySearch(f.Roots, root); !found {
			f.Roots = slices.Insert(f.Roots, at, root)
		}
	})
	if err != nil {
		return "", fmt.Errorf("trust %s: %w", root, err)
	}
	return root, nil
}

// Offer asks the user at a terminal whether to trust the folder that c is of, if
// it is not trusted and has something that only a trusted one gets. ask puts a
// question, which tells what that is, and returns the answer as it was typed.
// The word "yes" trusts, any other answer does not. trusted says that the
// configuration has to be loaded again.
func Offer(ctx context.Context, home string, c *Config, ask func(question string) (answer string, err error)) (trusted bool, err error) {
	if c.Trusted || len(c.Withheld) == 0 {
		return false, nil
	}
	answer, err := ask(fmt.Sprintf("Do you trust what is written in %s? Its settings ask for:\n  %s\nType yes to let them: ",
		c.Root, strings.Join(c.Withheld, "\n  ")))
	if err != nil {
		return false, fmt.Errorf("ask whether to trust %s: %w", c.Root, err)
	}
	if !strings.EqualFold(strings.TrimSpace(answer), "yes") {
		return false, nil
	}
	_, err = Trust(ctx, home, c.Dir)
	return err == nil, err
}

// Untrust takes back the trust that covers dir and returns the roots that it
// took out of the store; none if dir was not trusted.
func Untrust(ctx context.Context, home, dir string) (roots []string, err error) {
	err = changeTrust(ctx, home, func(f *trustFile) {
		for root, ok := f.covers(dir); ok; root, ok = f.covers(dir) {
			roots = append(roots, root)
			f.Roots = slices.DeleteFunc(f.Roots, func(r string) bool { return r == root })
		}
	})
	if err != nil {
		return nil, fmt.Errorf("untrust %s: %w", dir, err)
	}
	return roots, nil
}

// covers returns the nearest trusted root that dir belongs to.
func (f *trustFile) covers(dir string) (root string, ok bool) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(real) {
		return "", false
	}
	for d := range upwards(real) {
		if slices.Contains(f.Roots, d) {
			return d, true
		}
		if hasGit(d) {
			return "", false
		}
	}
	return "", false
}

func trustPath(home string) string { return filepath.Join(home, "trust.json") }

// readTrust reads the store; one that is not there yet is empty.
func readTrust(home string) (*trustFile, error) {
	f := &trustFile{Version: trustVersion}
	if !filepath.IsAbs(home) {
		return nil, fmt.Errorf("data directory %q is not an absolute path", home)
	}
	path := trustPath(home)
	data, err := readWhole(path, maxTrust)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, f)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to start over", path, err)
	}
	if f.Version != trustVersion {
		return nil, fmt.Errorf("%s: version %d is not known; a newer troupe wrote it", path, f.Version)
	}
	slices.Sort(f.Roots)
	return f, nil
}

// changeTrust reads, changes and writes the store, alone.
func changeTrust(ctx context.Context, home string, change func(*trustFile)) error {
	return alone(ctx, home, "trust.json.lock", func() error {
		f, err := readTrust(home)
		if err != nil {
			return err
		}
		before := slices.Clone(f.Roots)
		change(f)
		if slices.Equal(before, f.Roots) {
			return nil
		}
		data, err := json.MarshalIndent(f, "", "\t")
		if err != nil {
			return err
		}
		return replace(trustPath(home), append(data, '\n'), 0o600)
	})
}
