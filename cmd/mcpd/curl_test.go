package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// curl replaces the curl program, so that the pages can be run without it. It supports
// the flags that they use.
func curl() {
	if err := runCurl(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		os.Exit(2)
	}
}

func runCurl(args []string) error {
	var url, body string
	headers := false
	header := http.Header{"Accept": {"*/*"}}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "-s":
		case arg == "-i":
			headers = true
		case (arg == "-H" || arg == "-d") && len(args) == 0:
			return fmt.Errorf("%s needs a value", arg)
		case arg == "-H":
			name, value, _ := strings.Cut(args[0], ": ")
			header.Set(name, value)
			args = args[1:]
		case arg == "-d":
			body, args = args[0], args[1:]
		case url == "" && !strings.HasPrefix(arg, "-"):
			url = arg
		default:
			return fmt.Errorf("unsupported flag %s", arg)
		}
	}
	return post(os.Stdout, url, header, body, headers)
}

// post prints the response, with status and headers if requested.
func post(out io.Writer, url string, header http.Header, body string, headers bool) error {
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if headers {
		fmt.Fprintln(out, answer.Proto, answer.Status)
		if err := answer.Header.Write(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	_, err = io.Copy(out, answer.Body)
	return err
}
