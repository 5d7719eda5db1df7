// The field's own client of guestinfo: prints the value of a key.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/vmware/vmw-guestinfo/rpcvmx"
)

func main() {
	value, err := rpcvmx.NewConfig().String(os.Args[1], "")
	if err != nil {
		log.Fatal(err)
	}

	fmt.Print(value)
}
