package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-sh/troupe"
)

func drawn(t *testing.T, kind string, width, height int) string {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), palette.Plan9)
	for i := range img.Pix {
		img.Pix[i] = byte(i * 7)
	}
	var out bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&out, img)
	case "jpeg":
		err = jpeg.Encode(&out, img, nil)
	case "gif":
		err = gif.Encode(&out, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// webp is a WebP file with this first chunk.
func webp(chunk string, data ...byte) string {
	data = append(data, make([]byte, 20)...)
	body := "WEBP" + chunk + string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + string(data)
	return "RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))) + body
}

func TestReadShowsPictures(t *testing.T) {
	for name, test := range map[string]struct{ content, media, said string }{
		"png":           {drawn(t, "png", 30, 20), "image/png", "30 × 20 pixels"},
		"jpeg":          {drawn(t, "jpeg", 31, 21), "image/jpeg", "31 × 21 pixels"},
		"gif":           {drawn(t, "gif", 32, 22), "image/gif", "32 × 22 pixels"},
		"webp lossy":    {webp("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a, 33, 0, 23, 0), "image/webp", "33 × 23 pixels"},
		"webp lossless": {webp("VP8L", 0x2f, 33, 0x40, 5, 0), "image/webp", "34 × 22 pixels"},
		"webp extended": {webp("VP8X", 0, 0, 0, 0, 34, 1, 0, 24, 0, 0), "image/webp", "291 × 25 pixels"},
		"padded":        {drawn(t, "png", 1, 1) + "\n\n", "image/png", "1 × 1 pixels"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.put("no ending", test.content) // the content counts, not the name
			res, err := d.call(Read{Files: d.files}, args{"file_path": "no ending"})
			if err != nil || len(res.Content) != 2 {
				t.Fatalf("%v, %d blocks", err, len(res.Content))
			}
			want := troupe.Image{Media: test.media, Data: base64.StdEncoding.EncodeToString([]byte(test.content))}
			if diff := cmp.Diff(want, res.Content[1]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if text := res.Content.Text(); !strings.HasPrefix(text, filepath.Join(d.dir, "no ending")+" ("+test.media) || !strings.Contains(text, test.said) {
				t.Errorf("said %q, want %q", text, test.said)
			}
			if !strings.Contains(string(res.Data), `"type":"image"`) {
				t.Errorf("data %s", res.Data)
			}
			d.must(d.write("no ending", "now text\n")) // it was seen
		})
	}
}

// What a provider could refuse does not get into the conversation: it would
// have every later request refused.
func TestReadHoldsBackPictures(t *testing.T) {
	good := drawn(t, "png", 300, 300)
	wide := []byte(drawn(t, "png", 1, 1))
	binary.BigEndian.PutUint32(wide[16:], maxSide+1) // the checksum of the header is wrong then, too
	for name, test := range map[string]struct{ content, said, err string }{
		"cut off png":  {good[:len(good)-20], "an image (image/png", ""},
		"cut off jpeg": {strings.TrimSuffix(drawn(t, "jpeg", 30, 20), "\xff\xd9"), "damaged", ""},
		"cut off gif":  {drawn(t, "gif", 30, 20)[:200], "damaged", ""},
		"cut off webp": {webp("VP8L", 0x2f, 33, 0x40, 5, 0)[:35], "damaged", ""},
		"odd webp":     {webp("ALPH", 0x2f, 33, 0x40, 5, 0), "is a binary file", ""},
		"no pixels":    {webp("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a, 0, 0, 23, 0), "damaged", ""},
		"header only":  {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "damaged", ""},
		"wide":         {drawn(t, "gif", maxSide+1, 1), "", "8001 × 1 pixels"},
		"high":         {drawn(t, "gif", 1, maxSide+1), "", "1 × 8001 pixels"},
		"large":        {good + strings.Repeat("x", maxPicture), "", "the image has 3.8 MB; models take 3.75 MB at most"},
		"very large":   {good + strings.Repeat("x", maxFileSize), "", "the image has 64.0 MB"},
		"broken head":  {string(wide), "damaged", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.put("a.png", test.content)
			res, err := d.call(Read{Files: d.files}, args{"file_path": "a.png"})
			if errText(err) != "" != (test.err != "") || !strings.Contains(errText(err), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if text := res.Content.Text(); !strings.Contains(text, test.said) {
				t.Errorf("said %q, want %q", text, test.said)
			}
			for _, b := range res.Content {
				if _, ok := b.(troupe.Image); ok {
					t.Error("it was shown")
				}
			}
		})
	}
	// The largest that is shown has 5 MB in base64.
	d := newDesk(t)
	d.put("a.gif", strings.TrimSuffix(drawn(t, "gif", 1, 1), "\x00;")+strings.Repeat("x", maxPicture-1000)+"\x00;")
	res, err := d.call(Read{Files: d.files}, args{"file_path": "a.gif"})
	if err != nil || len(res.Content) != 2 || len(res.Content[1].(troupe.Image).Data) > 5<<20 {
		t.Errorf("%v, %d blocks", err, len(res.Content))
	}
}
