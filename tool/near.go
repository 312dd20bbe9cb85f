package tool

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// similarity is how alike a and b are, from 0 to 1: the share of the pairs of
// neighbouring bytes that they have in common. Case does not count.
func similarity(a, b string) float64 {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return 1
	}
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := make(map[[2]byte]int)
	for i := range len(a) - 1 {
		pairs[[2]byte{a[i], a[i+1]}]++
	}
	common := 0
	for i := range len(b) - 1 {
		p := [2]byte{b[i], b[i+1]}
		if pairs[p] > 0 {
			pairs[p]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b)-2)
}

// nearNames returns up to three entries of the directory of path whose names
// are like the last element of path, the nearest first.
func nearNames(path string) []string {
	const entries = 5000 // of one directory are looked at
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(entries) // an error leaves fewer names
	type candidate struct {
		name  string
		score float64
	}
	var found []candidate
	wanted := filepath.Base(path)
	for _, name := range names {
		score := similarity(wanted, name)
		if stem(name) == stem(wanted) {
			score = max(score, 0.9)
		}
		if score >= 0.5 {
			found = append(found, candidate{name, score})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range found[:min(3, len(found))] {
		out = append(out, filepath.Join(filepath.Dir(path), c.name))
	}
	return out
}

// stem is a file's name without its extension.
func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// missing is the error for a file that is not there; it says what is instead.
func missing(doing, path string) error {
	if near := nearNames(path); near != nil {
		return fmt.Errorf("%s %s: %w; near names: %s", doing, path, fs.ErrNotExist, strings.Join(near, ", "))
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%s %s: %w, nor does its directory", doing, path, fs.ErrNotExist)
	}
	return fmt.Errorf("%s %s: %w", doing, path, fs.ErrNotExist)
}
