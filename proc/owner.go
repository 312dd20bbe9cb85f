package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/troupe-sh/troupe/internal/statefile"
)

// Owner is this process as the owner of temporary files. If it cannot be told
// from others, what it leaves behind is never swept.
func Owner() statefile.Owner {
	self, err := Self()
	space, werr := where()
	if err != nil || werr != nil {
		return statefile.Owner{}
	}
	o := naming{boot: short(self.Boot), space: short(space)}
	return statefile.Owner{Name: o.name(self), Gone: o.gone}
}

// A naming is what names of owners are compared with: the present run of the
// machine, and the space in which a pid means something.
type naming struct{ boot, space string }

// name is what stands for a process: pid, start, boot and space.
func (o naming) name(id Identity) string {
	return strings.Join([]string{strconv.Itoa(id.PID), strconv.FormatUint(id.Start, 36), o.boot, o.space}, ".")
}

// gone reports whether a process of this name ran in our space and does not any more.
func (o naming) gone(name string) bool {
	part := strings.Split(name, ".")
	if len(part) != 4 || part[3] != o.space {
		return false
	}
	pid, err := strconv.Atoi(part[0])
	start, serr := strconv.ParseUint(part[1], 36, 64)
	if err != nil || serr != nil || pid <= 0 || len(part[2]) != len(o.boot) {
		return false
	}
	if part[2] != o.boot {
		return true
	}
	self, err := Self()
	if err != nil {
		return false
	}
	alive, err := Alive(Identity{pid, start, self.Boot})
	return err == nil && !alive
}

// short tells texts apart, in a few letters that can stand in a file name.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
