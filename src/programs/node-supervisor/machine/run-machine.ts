/** A node as a virtual machine. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { background } from '../../../cosi/background.ts'
import { createCgroup, removeCgroup } from '../../../linux/process/cgroup.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { readTable } from '../../../wire/gpt/table.ts'
import { viewOf } from '../../../wire/probe/view.ts'
import { nodeCgroup } from '../cgroup-names.ts'
import { selfCommand } from '../detached.ts'
import { configUrl } from '../gateway/serve-configs.ts'
import { type ClusterRecord, type MachinesRecord, type NodeRecord, nodePaths } from '../layout.ts'
import { macOf } from '../node-address.ts'
import { restartUntilStopped, type StopReason, type SupervisedRun } from '../restart-loop.ts'
import { machineFirmware } from './host-firmware.ts'
import { machineImages, readCommandLine } from './images.ts'
import { qemuArguments, type VirtualMachine } from './qemu-arguments.ts'
import { Control, type Shutdown } from './qmp.ts'

/** What running a machine takes. */
export interface MachineRun extends Pick<SupervisedRun, 'console' | 'signal' | 'report'> {
  cluster: ClusterRecord
  machines: MachinesRecord
  node: NodeRecord
  /** The node's directory. */
  directory: string
}

/** Milliseconds for a shutdown: pods have 30 s by default. */
const stopTimeout = 75_000
const mib = 1024 * 1024

/** Runs the machine until it is shut down from inside or the signal aborts. */
export function runMachine(run: MachineRun): Promise<void> {
  const cgroup = nodeCgroup(run.cluster.id, run.node.name)
  return restartUntilStopped({
    ...run,
    clean: () => removeCgroup(cgroup, { deadlineMs: 20_000 }),
    once: (running) => runOnce(run, cgroup, running),
  })
}

/** Interprets the end of an emulator from its exit code and its last SHUTDOWN event. */
export function machineStopReason(code: number | null, signal: NodeJS.Signals | null, shutdown: Shutdown | undefined): StopReason {
  if (signal) return { again: true, text: `the emulator was killed by ${signal}` }
  if (code !== 0) return { again: true, text: `the emulator exited with code ${code}` }
  if (shutdown?.reason === 'guest-reset' || shutdown?.reason === 'host-qmp-system-reset') return { again: true, text: 'rebooted' }
  if (shutdown?.reason === 'guest-panic') return { again: true, text: 'its kernel panicked' }
  if (shutdown?.reason === 'subsystem-reset') return { again: true, text: 'reset by its watchdog' }
  return { again: false, text: shutdown?.guest ? 'powered off' : 'shut down' }
}

async function runOnce(run: MachineRun, cgroup: string, running: () => void): Promise<StopReason> {
  const control = new Control()
  const over = new AbortController()
  const machine = machineOf(run)
  if (machine.control) rmSync(machine.control, { force: true })
  createCgroup(cgroup)
  const [command, ...before] = selfCommand()
  // In the node's control group it ends with the node, no matter who removes the group.
  const args = [...before, 'exec', '--cgroup', cgroup, '--', 'qemu-system-x86_64', ...qemuArguments(machine)]
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], argv0: before.length === 0 ? 'ichor' : undefined })
  child.stdout.on('data', (bytes: Buffer) => run.console.write(bytes))
  child.stderr.on('data', (bytes: Buffer) => run.console.write(bytes))
  const stop = () => background(powerOff(child, control), run.console.log, 'power off failed')
  try {
    child.once('spawn', running)
    if (machine.control) background(control.connect(machine.control, over.signal), run.console.log, 'control of the emulator failed')
    const end = new Promise<StopReason>((resolve) => {
      child.once('error', (error) => resolve({ again: true, text: error.message }))
      child.once('close', (code, signal) => resolve(machineStopReason(code, signal, control.ended)))
    })
    run.signal.addEventListener('abort', stop)
    if (run.signal.aborted) stop()
    return await end
  } finally {
    run.signal.removeEventListener('abort', stop)
    over.abort()
    control.close()
  }
}

/** Presses the power button, and kills the emulator after a timeout. */
async function powerOff(child: ChildProcess, control: Control): Promise<void> {
  const gone = once(child, 'exit')
  control.pressPower()
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeout)
  await gone
  clearTimeout(timer)
}

/** The description of a node's machine; missing disks and firmware variables are created. */
function machineOf({ cluster, machines, node, directory }: MachineRun): VirtualMachine {
  const paths = nodePaths(directory)
  const images = machineImages(machines.images)
  mkdirSync(paths.disk, { recursive: true, mode: 0o700 })
  const disks = (node.disks ?? []).map(({ bus, size }, index) => ({
    file: provideDisk(join(paths.disk, `disk${index}.raw`), size, index === 0 && machines.start === 'disk-image' ? images.disk : undefined),
    format: 'raw' as const,
    bus,
    serial: `${node.uuid?.slice(0, 8) ?? node.name}-${index}`,
  }))
  const installed = disks[0] !== undefined && isInstalled(disks[0].file)
  const { network } = cluster
  return {
    name: node.name,
    cpus: Math.max(1, Math.round(node.cpus / 1000)),
    memory: Math.floor(node.memory / mib),
    accelerator: machines.accelerator,
    firmware: machines.firmware === 'bios' ? { kind: 'bios' } : machineFirmware(join(paths.disk, 'variables.fd'), machines.secureBoot),
    disks,
    cdrom: machines.start === 'iso' ? images.iso : undefined,
    kernel:
      machines.start === 'pxe' && !installed
        ? {
            kernel: images.kernel,
            initramfs: images.initramfs,
            commandLine: `${readCommandLine(images.commandLine)} talos.config=${configUrl(cluster, machines, node)}`,
          }
        : undefined,
    networks: [{ kind: 'tap', link: node.link, hardwareAddress: macOf(node.ip), mtu: network.mtu }],
    control: join(directory, 'qmp'),
    watchdog: true,
    // Each start is the supervisor's, which counts them.
    restarts: false,
    uuid: node.uuid,
  }
}

/** A disk of a size, empty or a copy of an image; an existing disk is left alone. */
function provideDisk(file: string, size: number, image: string | undefined): string {
  if (existsSync(file)) return file
  const next = `${file}.next`
  rmSync(next, { force: true })
  if (image) copyFileSync(image, next)
  else writeFileSync(next, '', { mode: 0o600 })
  truncateSync(next, size)
  // Only a whole disk gets the name, so that an interrupted copy is never started from.
  renameSync(next, file)
  return file
}

/** Whether the system is installed on a disk: the partition META gets its name after everything else is written. */
export function isInstalled(file: string): boolean {
  const fd = openSync(file, 'r')
  try {
    const { size } = fstatSync(fd)
    const stretch = (offset: number) => {
      const bytes = new Uint8Array(mib)
      return { offset, bytes: bytes.subarray(0, readSync(fd, bytes, 0, mib, offset)) }
    }
    const { partitions } = readTable(viewOf(size, [stretch(0), stretch(Math.max(0, size - mib))]), 512)
    return partitions.some(({ name }) => name === 'META')
  } catch (error) {
    if (error instanceof DecodeError) return false
    throw error
  } finally {
    closeSync(fd)
  }
}
