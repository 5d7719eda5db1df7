// Guest is what the tests run in containers: it prints its arguments and environment, echoes its input in capitals, and
// exits with the code of its arguments.
//
//	guest echo | guest exit CODE | guest list FOLDER | guest make FOLDER | guest size | guest wait
//	guest fill FILE MIB: writes so much and waits
//	guest words FILE SECONDS: appends each signal to a file, and ends so many seconds after the first
//	guest credentials: answers the kubelet's request for the credentials of an image, with those in its environment
//	guest append FILE WORD SECONDS: appends a word to a file, waits, and appends another
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	arg := func(n int) string {
		if len(os.Args) > n {
			return os.Args[n]
		}

		return ""
	}

	switch arg(1) {
	case "echo":
		fmt.Println("ready", os.Getenv("GREETING"))

		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(strings.ToUpper(lines.Text()))
		}

		fmt.Println("end of input")
	case "exit":
		code, _ := strconv.Atoi(arg(2)) //nolint:errcheck
		fmt.Fprintln(os.Stderr, "ends with", code)
		os.Exit(code)
	case "list":
		entries, err := os.ReadDir(arg(2))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}

		for _, entry := range entries {
			fmt.Println(entry.Name())
		}
	case "make":
		if err := os.Mkdir(arg(2), 0o755); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "fill":
		count, _ := strconv.Atoi(arg(3)) //nolint:errcheck
		if err := os.WriteFile(arg(2), make([]byte, count<<20), 0o644); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}

		rest("3600")
	case "credentials":
		var request struct {
			APIVersion string `json:"apiVersion"`
			Image      string `json:"image"`
		}

		json.NewDecoder(os.Stdin).Decode(&request) //nolint:errcheck
		registry, _, _ := strings.Cut(request.Image, "/")
		json.NewEncoder(os.Stdout).Encode(map[string]any{ //nolint:errcheck
			"apiVersion":   request.APIVersion,
			"kind":         "CredentialProviderResponse",
			"cacheKeyType": "Registry",
			"auth": map[string]any{
				registry: map[string]string{"username": os.Getenv("REGISTRY_USER"), "password": os.Getenv("REGISTRY_PASSWORD")},
			},
		})
	case "size":
		resized := make(chan os.Signal, 1)
		signal.Notify(resized, syscall.SIGWINCH)
		fmt.Println("terminal")
		<-resized

		var size [4]uint16

		syscall.Syscall(syscall.SYS_IOCTL, 0, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size))) //nolint:errcheck
		fmt.Printf("%d columns, %d rows\n", size[1], size[0])
	case "words":
		ended := make(chan os.Signal, 8)
		signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGQUIT)
		write(arg(2), "started")
		write(arg(2), "got "+(<-ended).String())
		rest(arg(3))
		write(arg(2), "done")
	case "append":
		write(arg(2), arg(3)+" began")
		rest(arg(4))
		write(arg(2), arg(3)+" ended")
	case "wait":
		hungUp := make(chan os.Signal, 1)
		signal.Notify(hungUp, syscall.SIGHUP)
		fmt.Println("waits")
		<-hungUp
		os.Exit(129)
	}
}

// write appends a line with the time in milliseconds, and brings it to the disk.
func write(path, text string) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}

	fmt.Fprintln(file, time.Now().UnixMilli(), text)
	file.Sync()  //nolint:errcheck
	file.Close() //nolint:errcheck
}

func rest(seconds string) {
	count, _ := strconv.Atoi(seconds) //nolint:errcheck
	time.Sleep(time.Duration(count) * time.Second)
}
