package troupetest

import (
	"context"

	"github.com/troupe-sh/troupe"
)

// Allow is a [troupe.Guard] that allows every call. It is for tests whose
// subject is not permission.
type Allow struct{}

// Check implements [troupe.Guard].
func (Allow) Check(context.Context, *troupe.Call) (troupe.Verdict, error) {
	return troupe.Verdict{Effect: troupe.Allow, By: "test"}, nil
}
