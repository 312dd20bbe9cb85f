package openai_test

import (
	"testing"

	"github.com/troupe-sh/troupe"
	"github.com/troupe-sh/troupe/model/openai"
	"github.com/troupe-sh/troupe/troupetest"
)

func TestTheContractOfAModel(t *testing.T) {
	troupetest.TestModel(t, func(t *testing.T) (troupe.Model, *troupetest.Provider) {
		p := troupetest.NewProvider(t, troupetest.Key("k"))
		return openai.New(openai.Options{BaseURL: p.URL() + "/v1", Key: "k"}), p
	})
}
