/** Finds out whether the hardware can run virtual machines: not from flags, but by starting a kernel on it. */

import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import type { MachinesRecord } from '../../../node-supervisor/layout.ts'
import { machineImages } from '../../../node-supervisor/machine/images.ts'

const kvm = '/dev/kvm'
const timeout = 20_000
// A kernel that finds no root file system panics, which is all that is wanted of it here: it got that far.
const proof = /Linux version [\s\S]*Kernel panic/

/** How machines run here: with the hardware's help when a kernel starts on it, else emulated, with the reason. */
export async function chooseAccelerator(images: string): Promise<{ accelerator: MachinesRecord['accelerator']; reason: string }> {
  const emulated = (reason: string) => ({ accelerator: 'tcg' as const, reason })
  try {
    accessSync(kvm, constants.R_OK | constants.W_OK)
  } catch {
    return emulated(`${kvm} is not to be opened`)
  }
  const { kernel } = machineImages(images)
  if (!existsSync(kernel)) return emulated(`there is no "${kernel}" to try ${kvm} with`)
  const output = await tryKernel(kernel)
  return proof.test(output) ? { accelerator: 'kvm', reason: '' } : emulated(`a kernel does not start on ${kvm}`)
}

/** What a kernel without anything to start prints on the hardware; it is stopped when it takes too long. */
function tryKernel(kernel: string): Promise<string> {
  const machine = ['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-machine', 'q35', '-m', '256', '-accel', 'kvm']
  const guest = ['-cpu', 'host', '-serial', 'stdio', '-kernel', kernel, '-append', 'console=ttyS0 panic=-1 root=none']
  return new Promise((resolve) => {
    let output = ''
    const child = spawn('qemu-system-x86_64', [...machine, ...guest], { stdio: ['ignore', 'pipe', 'ignore'] })
    const timer = setTimeout(() => child.kill('SIGKILL'), timeout)
    child.stdout.setEncoding('latin1').on('data', (text: string) => {
      output = (output + text).slice(-256 * 1024)
      if (proof.test(output)) child.kill('SIGKILL')
    })
    child.once('error', () => resolve(output))
    child.once('close', () => {
      clearTimeout(timer)
      resolve(output)
    })
  })
}
