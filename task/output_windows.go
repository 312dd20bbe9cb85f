package task

import "io/fs"

// noFollow is nothing here: who looks at a file first sees that it is a link.
const noFollow = 0

// isPrivate is true: what is in a user's profile nobody else may enter.
func isPrivate(fs.FileInfo) bool { return true }
