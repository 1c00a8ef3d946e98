package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// curl stands in for the program of that name, so that what the pages show of
// it can be run where it is not installed. It knows the flags that they use.
func curl() {
	if err := runCurl(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		os.Exit(2)
	}
}

func runCurl(args []string) error {
	var url, body string
	headers, method := false, http.MethodGet
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
		case arg == "-H" && args[0] == "@-":
			line, err := io.ReadAll(os.Stdin)
			if err != nil {
				return err
			}
			name, value, _ := strings.Cut(strings.TrimSpace(string(line)), ": ")
			header.Set(name, value)
			args = args[1:]
		case arg == "-H":
			name, value, _ := strings.Cut(args[0], ": ")
			header.Set(name, value)
			args = args[1:]
		case arg == "-d":
			body, args, method = args[0], args[1:], http.MethodPost
		case url == "" && !strings.HasPrefix(arg, "-"):
			url = arg
		default:
			return fmt.Errorf("this stand-in does not know %s", arg)
		}
	}
	return send(os.Stdout, method, url, header, body, headers)
}

// send prints the response, with its status and headers if headers is set.
func send(out io.Writer, method, url string, header http.Header, body string, headers bool) error {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
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
