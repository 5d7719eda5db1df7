import { closeSync, openSync } from 'node:fs'
import { systemCallNumber } from '../../wire/seccomp/system-calls.ts'
import { check, cString, libc } from '../libc.ts'
import { translated } from '../system-error.ts'

const c = libc({
  reboot: { args: ['i32'], returns: 'i32' },
  sync: { args: [], returns: 'void' },
})

const commands = {
  restart: 0x01234567,
  halt: 0xcdef0123 | 0,
  powerOff: 0x4321fedc,
  kexec: 0x45584543,
  ctrlAltDelOff: 0,
  ctrlAltDelOn: 0x89abcdef | 0,
} as const

/** reboot(2). In a pid namespace other than the first this ends the namespace: `restart` with SIGHUP, the others with SIGINT. */
export function reboot(command: keyof typeof commands): void {
  if (!command.startsWith('ctrl')) c().sync()
  check('reboot', c().reboot(commands[command]), command)
}

/** kexec_file_load(2): the kernel that `reboot('kexec')` starts. */
function kexecFileLoad(kernelFd: number, initrdFd: number | undefined, commandLine: string): void {
  const number = systemCallNumber('kexec_file_load')
  const line = cString(commandLine)
  const call = libc({ syscall: { args: ['i64', 'i64', 'i64', 'u64', 'ptr', 'u64'], returns: 'i64' } })
  const noInitrd = 4 // KEXEC_FILE_NO_INITRAMFS
  check('kexec_file_load', call().syscall(number, kernelFd, initrdFd ?? -1, line.length, line, initrdFd === undefined ? noInitrd : 0))
}

/** Loads a kernel and its initramfs from files, for `reboot('kexec')`. */
export function loadNextKernel(kernel: string, initramfs: string, commandLine: string): void {
  const open = (path: string) => translated('open', path, () => openSync(path, 'r'))
  const kernelFd = open(kernel)
  try {
    const initramfsFd = open(initramfs)
    try {
      kexecFileLoad(kernelFd, initramfsFd, commandLine)
    } finally {
      closeSync(initramfsFd)
    }
  } finally {
    closeSync(kernelFd)
  }
}
