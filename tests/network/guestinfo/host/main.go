// A stand-in for the hypervisor VMware: runs a program and answers its reads of the magic port with values of a file in JSON. The
// processor refuses such a read to a process with SIGSEGV, which a tracer sees before the process does.
//
//	host VALUES.json LOST PROGRAM [ARGUMENT...]
//
// LOST is the number of channels that are lost in the middle of a reply, as when the machine is moved meanwhile. The exit code is that of
// the program. See ptrace(2).
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

const (
	magic    = 0x564d5868
	port     = 0x5658
	message  = 0x1e
	protocol = 0x49435052 | 0x80000000

	success    = 0x0001
	replyWaits = 0x0002
	lost       = 0x0010

	// Not in package syscall: __WALL of wait(2).
	all = 0x40000000
)

const (
	stepOpen = iota
	stepSize
	stepData
	stepReplySize
	stepReplyData
	stepDone
	stepClose
)

type channel struct {
	high, low uint32
	length    int
	request   []byte
	reply     []byte
	sent      int
}

type hypervisor struct {
	values   map[string]string
	channels map[uint32]*channel
	opened   uint32
	toLose   int
}

func main() {
	runtime.LockOSThread()

	content, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}

	host := &hypervisor{channels: map[uint32]*channel{}}
	if err = json.Unmarshal(content, &host.values); err != nil {
		log.Fatal(err)
	}

	if host.toLose, err = strconv.Atoi(os.Args[2]); err != nil {
		log.Fatal(err)
	}

	guest := exec.Command(os.Args[3], os.Args[4:]...)
	guest.Stdout, guest.Stderr = os.Stdout, os.Stderr
	guest.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}

	if err = guest.Start(); err != nil {
		log.Fatal(err)
	}

	os.Exit(host.run(guest.Process.Pid))
}

// run lets the traced process go on until it ends, and returns its exit code.
func (h *hypervisor) run(pid int) int {
	for started := false; ; {
		var status syscall.WaitStatus

		thread, err := syscall.Wait4(-1, &status, all, nil)
		if err != nil {
			log.Fatal(err)
		}

		if status.Exited() || status.Signaled() {
			if thread == pid {
				if status.Signaled() {
					return 128 + int(status.Signal())
				}

				return status.ExitStatus()
			}

			continue
		}

		deliver := 0

		switch signal := status.StopSignal(); {
		case !started:
			started = true

			if err = syscall.PtraceSetOptions(thread, syscall.PTRACE_O_TRACECLONE); err != nil {
				log.Fatal(err)
			}
		case signal == syscall.SIGSEGV:
			if !h.answer(thread) {
				deliver = int(signal)
			}
		case signal != syscall.SIGTRAP && signal != syscall.SIGSTOP:
			deliver = int(signal)
		}

		if err = syscall.PtraceCont(thread, deliver); err != nil && err != syscall.ESRCH {
			log.Fatal(err)
		}
	}
}

// answer executes the read of the port that a thread has stopped at; false if it has stopped at something else.
func (h *hypervisor) answer(thread int) bool {
	var r syscall.PtraceRegs

	if err := syscall.PtraceGetRegs(thread, &r); err != nil {
		log.Fatal(err)
	}

	code := make([]byte, 1)
	if _, err := syscall.PtracePeekText(thread, uintptr(r.Rip), code); err != nil || code[0] != 0xed {
		return false
	}

	if uint32(r.Rax) != magic || uint16(r.Rdx) != port || uint16(r.Rcx) != message {
		return false
	}

	h.step(&r)
	r.Rip++

	if err := syscall.PtraceSetRegs(thread, &r); err != nil {
		log.Fatal(err)
	}

	return true
}

func (h *hypervisor) step(r *syscall.PtraceRegs) {
	step := uint32(r.Rcx) >> 16
	number := uint32(r.Rdx) >> 16
	status := uint32(0)
	kind := number

	if step == stepOpen {
		if uint32(r.Rbx) == protocol {
			h.opened++
			opened := &channel{high: 0x1000 + h.opened, low: 0x2000 + h.opened}
			h.channels[h.opened] = opened
			r.Rsi, r.Rdi = uint64(opened.high), uint64(opened.low)
			kind, status = h.opened, success
		}
	} else if open := h.channels[number]; open != nil && uint32(r.Rsi) == open.high && uint32(r.Rdi) == open.low {
		status, kind = h.within(step, number, open, r)
	}

	r.Rcx = uint64(status<<16 | message)
	r.Rdx = uint64(kind<<16 | port)
}

// within takes a step on an open channel; returns its status, and what the upper half of DX names.
func (h *hypervisor) within(step, number uint32, open *channel, r *syscall.PtraceRegs) (status, kind uint32) {
	switch step {
	case stepSize:
		open.length, open.request, open.reply, open.sent = int(uint32(r.Rbx)), nil, nil, 0

		return success, number
	case stepData:
		for shift := 0; shift < 32 && len(open.request) < open.length; shift += 8 {
			open.request = append(open.request, byte(r.Rbx>>shift))
		}

		if len(open.request) == open.length {
			open.reply = h.reply(string(open.request))
		}

		return success, number
	case stepReplySize:
		if open.reply == nil {
			return success, number
		}

		r.Rbx = uint64(len(open.reply))

		return success | replyWaits, stepSize
	case stepReplyData:
		if uint16(r.Rbx) != success || open.sent >= len(open.reply) {
			return 0, 0
		}

		if h.toLose > 0 && open.sent > 0 {
			h.toLose--
			delete(h.channels, number)

			return lost, 0
		}

		piece := uint32(0)
		for shift := 0; shift < 32 && open.sent < len(open.reply); shift += 8 {
			piece |= uint32(open.reply[open.sent]) << shift
			open.sent++
		}

		r.Rbx = uint64(piece)

		return success, stepData
	case stepDone:
		if uint16(r.Rbx) != success || open.sent != len(open.reply) {
			return 0, 0
		}

		return success, number
	case stepClose:
		delete(h.channels, number)

		return success, number
	}

	return 0, 0
}

func (h *hypervisor) reply(request string) []byte {
	key, found := strings.CutPrefix(request, "info-get ")
	if !found {
		return []byte("0 Unknown command")
	}

	value, found := h.values[key]
	if !found {
		return []byte("0 No value found")
	}

	return fmt.Appendf(nil, "1 %s", value)
}
