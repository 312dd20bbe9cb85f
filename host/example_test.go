package host_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/troupe-sh/troupe/config"
	"github.com/troupe-sh/troupe/host"
)

// A program lets an agent read a file and prints what it says. Its model plays
// a script; with a key in the environment it could as well be "anthropic/…".
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"poem.txt": "Author: Ada\n",
		"model.json": `{"rules": [
			{"when": {"turn": 1}, "reply": {"content": [{"call": "Read", "input": {"file_path": "poem.txt"}}]}},
			{"when": {"results": [{"text": {"regexp": "Author: (?P<name>\\w+)"}}]}, "reply": {"content": [{"text": "It is by ${name}."}]}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	home := filepath.Join(dir, "home") // where sessions are kept
	settings, err := config.Load(config.Sources{Home: home, Dir: dir, Tools: host.Known()})
	if err != nil {
		log.Fatal(err)
	}
	models := host.NewModels(os.Getenv, nil, dir, time.Now, rand.Float64)
	name, err := models.Choose("script/model.json")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	s, err := host.Open(ctx, host.Options{Home: home, Config: settings, Models: models, Model: name, Env: os.Environ(), Now: time.Now, NewID: uuid.NewString})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if err := s.Send(ctx, "Who wrote poem.txt?"); err != nil {
		log.Fatal(err)
	}
	end, err := s.Run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Text)
	// Output: It is by Ada.
}
