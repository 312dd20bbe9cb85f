package anthropic_test

import (
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model/anthropic"
	"github.com/troupe-sh/troupe/troupetest"
)

func TestTheContractOfAModel(t *testing.T) {
	troupetest.TestModel(t, func(t *testing.T) (troupe.Model, *troupetest.Provider) {
		p := troupetest.NewProvider(t, troupetest.Key("k"))
		return anthropic.New(anthropic.Options{BaseURL: p.URL(), Key: "k"}), p
	})
}
