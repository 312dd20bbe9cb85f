package tool

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/troupe-sh/troupe/proc"
)

// sandboxNotes say what the sandbox has denied to a command that failed, as far
// as its output tells: a program only says that something was not permitted.
func sandboxNotes(out proc.Output, end bashEnd) (notes []string) {
	if end.sandbox == nil || end.Code == 0 {
		return nil
	}
	said := string(bytes.Join([][]byte{out.Head, out.Tail}, []byte("\n")))
	if denied := end.sandbox.Denied(end.limits, end.dir, said); len(denied) > 0 {
		notes = append(notes, fmt.Sprintf("(the sandbox denied writing to %s: commands write in the working directories, the temporary directory and the caches of build tools, and not to settings, .git/config and .git/hooks. "+
			"Write elsewhere; or tell the user, who can allow it with sandbox.filesystem.allowWrite in the settings)", strings.Join(denied, ", ")))
	}
	if end.limits.NoNetwork && networkFailed(said) {
		notes = append(notes, "(the sandbox cuts off the network, as sandbox.network.deniedDomains in the settings says; tell the user if this command needs it)")
	}
	return notes
}

// networkFailed reports whether output has one of the words for a network that
// is not there.
func networkFailed(said string) bool {
	for _, words := range []string{"Network is unreachable", "network is unreachable", "ENETUNREACH", "EAI_AGAIN", "Could not resolve", "Failed to connect", "Couldn't connect", "Temporary failure in name resolution",
		"Name or service not known", "connection refused", "Connection refused", "ECONNREFUSED", "no such host", "unable to resolve host", "dial tcp"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}
