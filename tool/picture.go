package tool

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/troupe-sh/troupe"
)

// What providers take of a picture. One that they refuse stays in the
// conversation and would make them refuse every later request, so nothing is
// shown that may be refused.
const (
	maxPicture = (5 << 20) / 4 * 3 // bytes: providers take 5 MB of base64
	maxSide    = 8000              // pixels
)

var errDamaged = errors.New("its data is damaged or cut off")

// isPicture says that providers take files of this media type as images.
func isPicture(media string) bool {
	switch media {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// showPicture is the picture in s for the model.
func showPicture(ctx context.Context, path string, s *source) (troupe.Result, error) {
	data, err := io.ReadAll(io.LimitReader(s.text, maxPicture+1))
	if err != nil {
		return troupe.Result{}, err
	}
	if err := s.drain(ctx); err != nil {
		return troupe.Result{}, err
	}
	if len(data) > maxPicture {
		return troupe.Result{}, fmt.Errorf("the image has %s; models take %.2f MB at most: make a smaller copy and Read that",
			byteSize(s.size()), float64(maxPicture)/(1<<20))
	}
	width, height, err := pictureSize(s.binary, data)
	switch {
	case err != nil:
		return troupe.Answer(fmt.Sprintf("%s is an image (%s, %s) that cannot be shown: %v.", path, s.binary, byteSize(s.size()), err)), nil
	case width > maxSide || height > maxSide:
		return troupe.Result{}, fmt.Errorf("the image has %d × %d pixels; models take %d a side at most: make a smaller copy and Read that", width, height, maxSide)
	}
	type dimensions struct {
		Width  int `json:"originalWidth"`
		Height int `json:"originalHeight"`
	}
	type file struct {
		FilePath   string     `json:"filePath"`
		Type       string     `json:"type"`
		Size       int        `json:"originalSize"`
		Dimensions dimensions `json:"dimensions"`
	}
	res := troupe.Result{Content: troupe.Blocks{
		troupe.Text(fmt.Sprintf("%s (%s, %d × %d pixels, %s):", path, s.binary, width, height, byteSize(int64(len(data))))),
		troupe.Image{Media: s.binary, Data: base64.StdEncoding.EncodeToString(data)},
	}}
	res.Data, err = troupe.Encode(map[string]any{"type": "image", "file": file{path, s.binary, len(data), dimensions{width, height}}})
	if err != nil {
		return troupe.Result{}, fmt.Errorf("describe the result: %w", err)
	}
	return res, nil
}

// pictureSize is the size in pixels of a picture that is whole, as far as its
// beginning and its end tell.
func pictureSize(media string, data []byte) (width, height int, err error) {
	var c image.Config
	var end []byte // what stands at the end of a whole picture
	switch media {
	case "image/png":
		c, err = png.DecodeConfig(bytes.NewReader(data))
		end = []byte("IEND")
	case "image/jpeg":
		c, err = jpeg.DecodeConfig(bytes.NewReader(data))
		end = []byte{0xff, 0xd9}
	case "image/gif":
		c, err = gif.DecodeConfig(bytes.NewReader(data))
		end = []byte{0, 0x3b}
	default:
		c.Width, c.Height, err = webpSize(data)
	}
	const padding = 4 << 10 // some programs leave something behind the end
	if err != nil || !bytes.Contains(data[max(0, len(data)-padding):], end) || c.Width == 0 || c.Height == 0 {
		return 0, 0, errDamaged
	}
	return c.Width, c.Height, nil
}

// webpSize reads the header of a WebP file, see RFC 9649.
func webpSize(data []byte) (width, height int, err error) {
	const header = 30
	if len(data) < header || int64(binary.LittleEndian.Uint32(data[4:]))+8 > int64(len(data)) {
		return 0, 0, errDamaged
	}
	switch string(data[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(data[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(data[28:]) & 0x3fff), nil
	case "VP8L":
		bits := binary.LittleEndian.Uint32(data[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, nil
	case "VP8X":
		three := func(at int) int { return int(data[at]) | int(data[at+1])<<8 | int(data[at+2])<<16 }
		return three(24) + 1, three(27) + 1, nil
	}
	return 0, 0, errDamaged
}
