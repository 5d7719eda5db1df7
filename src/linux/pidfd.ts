import { check, libc } from './libc.ts'
import { type Signal, signalNumber } from './process.ts'

const c = libc({
  syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
})

const SYS_pidfd_send_signal = 424
const SYS_pidfd_open = 434

/** pidfd_open(2): a descriptor that names one process for good and is readable when it has ended. */
export function pidfdOpen(pid: number): number {
  return check('pidfd_open', c().syscall(SYS_pidfd_open, pid, 0, 0, 0), String(pid))
}

/** pidfd_send_signal(2). */
export function pidfdSendSignal(fd: number, signal: Signal): void {
  check('pidfd_send_signal', c().syscall(SYS_pidfd_send_signal, fd, signalNumber(signal), 0, 0), String(signal))
}
