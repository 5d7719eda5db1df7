// A WireGuard link of the protocol's own implementation in Go: `judge LINK` creates it and serves its configuration socket.
package main

import (
	"fmt"
	"os"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/ipc"
	"golang.zx2c4.com/wireguard/tun"
)

func main() {
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(name string) error {
	link, err := tun.CreateTUN(name, device.DefaultMTU)
	if err != nil {
		return err
	}
	dev := device.NewDevice(link, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, name+": "))
	file, err := ipc.UAPIOpen(name)
	if err != nil {
		return err
	}
	listener, err := ipc.UAPIListen(name, file)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go dev.IpcHandle(connection)
	}
}
