// SPDX-License-Identifier: Apache-2.0

// What programs in Go take a target for: one port for each way, printed as "PORT NAME", and "ready" after the last; each answers with the path.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
)

func serve(name string, handler http.Handler) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d go: %s\n", listener.Addr().(*net.TCPAddr).Port, name)
	go http.Serve(listener, handler)
}

func tell(answer func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		io.WriteString(writer, answer(request))
	})
}

func main() {
	plain := func(request *http.Request) string { return request.URL.Path }
	mux := http.NewServeMux()
	mux.Handle("/", tell(plain))
	serve("ServeMux", mux)
	serve("Path", tell(plain))
	serve("EscapedPath", tell(func(request *http.Request) string { return request.URL.EscapedPath() }))
	serve("Clean", tell(func(request *http.Request) string { return path.Clean(request.URL.Path) }))
	serve("unescaped twice", tell(func(request *http.Request) string {
		again, err := url.PathUnescape(request.URL.Path)
		if err != nil {
			return request.URL.Path
		}
		return path.Clean(again)
	}))
	serve("JoinPath", tell(func(request *http.Request) string {
		return (&url.URL{Path: "/"}).ResolveReference(request.URL).Path
	}))
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
}
