// Package forge tells agents what happens to a pull request: comments, reviews,
// results of checks, its end.
//
// It speaks the REST API of GitHub, which others speak, too, and it only reads.
// [Open] names the server, [Watch] polls one pull request and gives each new
// [Event] to a func, once, also if the process dies in between; [Render] makes of
// an event what a model reads. [Subscribe] is the tool by which an agent begins
// and ends that.
//
// What is said in a pull request was written by strangers. An event is text for
// a model to judge: it carries no right, and cannot leave the element that it
// stands in.
package forge
