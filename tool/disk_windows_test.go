package tool

// privateModes says that the modes of files keep others out; here that is
// the matter of their directory.
const privateModes = false
