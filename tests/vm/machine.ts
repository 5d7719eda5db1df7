/** A machine under emulation: QEMU without hardware help, its console in a file, its API on a port of the loopback. */

import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { machineFirmware } from '../../src/programs/node-supervisor/machine/host-firmware.ts'
import {
  type DiskBus,
  type Firmware,
  type MachineDisk,
  type MachineNetwork,
  qemuArguments,
  type VirtualMachine,
} from '../../src/programs/node-supervisor/machine/qemu-arguments.ts'
import { within } from '../../src/timing/within.ts'
import { type CommandResult, finished } from '../support/command-result.ts'
import { freePort } from '../support/free-port.ts'

/** What `./mkimage.sh` has made. */
export const dist = join(import.meta.dir, '../../dist')

/** Milliseconds for one attempt of a condition that is polled: longer than talosctl may take. An attempt that is lost ends no story. */
const callLimit = 15 * 60_000

/** What to start. */
export interface MachineOptions {
  /** Another emulator than that of amd64, with its arguments for a machine whose API is at 127.0.0.1:`port`. */
  emulator?: (port: number) => readonly string[]
  /** Folder with ichor-vmlinuz, ichor-initramfs and ichor-cmdline: the emulator hands them over, without any boot loader. */
  image?: string
  /** Where the console is kept. */
  console: string
  /** One more kernel parameter, or several; for a kernel that is handed over. */
  append?: string
  /** Mebibytes. */
  memory?: number
  firmware?: Firmware
  disks?: readonly MachineDisk[]
  cdrom?: string | undefined
  /** Networks besides the first, which leads to the API. */
  networks?: readonly MachineNetwork[]
  /** What the first network does besides: let out to the host (10.0.2.2) and its network, or offer a boot file. */
  outside?: boolean
  /** The network namespace that stands for the host; its API is on the loopback of that. */
  netns?: string
  pxe?: { folder: string; file: string }
  /** Ports of the machine that are wanted on the loopback besides its API. */
  ports?: readonly number[]
  watchdog?: boolean
  /** The control socket of its TPM. */
  tpm?: string | undefined
  /** The socket of its guest agent. */
  agent?: string
  /** Whether the machine may restart itself; otherwise a restart ends it. */
  restarts?: boolean
  smbios?: readonly string[]
  control?: string
}

/** The folder that keeps the state of a story between its steps and between runs: `$ICHOR_VM_STATE/<name>`, or a new one. */
export function stateFolder(name: string): string {
  const kept = process.env.ICHOR_VM_STATE
  if (!kept) return mkdtempSync(join(tmpdir(), `ichor-vm-${name}-`))
  const folder = join(kept, name)
  mkdirSync(folder, { recursive: true })
  return folder
}

/** Removes a story's folder unless ICHOR_VM_STATE keeps it. */
export function forgetState(folder: string): void {
  if (!process.env.ICHOR_VM_STATE) rmSync(folder, { recursive: true, force: true })
}

/** An empty disk of a size in mebibytes; one that is there is left as it is. */
export function disk(file: string, mebibytes: number, bus: DiskBus = 'virtio', serial?: string): MachineDisk {
  if (!existsSync(file)) {
    writeFileSync(file, '')
    truncateSync(file, mebibytes * 1024 * 1024)
  }
  return { file, format: 'raw', bus, serial }
}

/** UEFI with variables of its own in the folder. */
export function uefi(folder: string, secure = false): Firmware {
  return machineFirmware(join(folder, secure ? 'variables-secure.fd' : 'variables.fd'), secure)
}

/** The machine an option's words describe, with its API at 127.0.0.1:`port`. */
export function virtualMachine(options: MachineOptions, port: number, others: ReadonlyMap<number, number> = new Map()): VirtualMachine {
  const { image, append = '' } = options
  const kernel = image && {
    kernel: join(image, 'ichor-vmlinuz'),
    initramfs: join(image, 'ichor-initramfs'),
    commandLine: `${readFileSync(join(image, 'ichor-cmdline'), 'utf8').trim()} ${append}`.trim(),
  }
  const forwards = [{ hostPort: port, port: 50_000 }, ...[...others].map(([to, hostPort]) => ({ hostPort, port: to }))]
  return {
    name: 'ichor-test',
    cpus: 2,
    memory: options.memory ?? 2048,
    accelerator: 'tcg',
    firmware: options.firmware ?? { kind: 'bios' },
    disks: options.disks ?? [],
    cdrom: options.cdrom,
    kernel: kernel || undefined,
    networks: [{ kind: 'user', forwards, outside: options.outside ?? false, pxe: options.pxe }, ...(options.networks ?? [])],
    console: options.console,
    control: options.control,
    watchdog: options.watchdog,
    tpm: options.tpm,
    agent: options.agent,
    restarts: options.restarts ?? false,
    smbios: options.smbios,
  }
}

/** Words before the emulator's that make it end with the story, however that breaks off. */
const tied = [process.execPath, join(import.meta.dir, '../../src/main.ts'), 'exec', '--parent-death-signal', 'SIGKILL', '--']

/** A running machine. */
export class TestMachine {
  /** Where its API is on the loopback. */
  readonly port: number
  /** Where its other ports are. */
  readonly ports: ReadonlyMap<number, number>
  readonly #file: string
  readonly #qemu: Bun.Subprocess
  #seen: number

  private constructor(port: number, ports: ReadonlyMap<number, number>, file: string, seen: number, qemu: Bun.Subprocess) {
    this.port = port
    this.ports = ports
    this.#file = file
    this.#seen = seen
    this.#qemu = qemu
  }

  /** Powers a machine on; its console goes on in the same file. */
  static async start(options: MachineOptions): Promise<TestMachine> {
    const port = await freePort()
    const ports = new Map<number, number>()
    for (const wanted of options.ports ?? []) ports.set(wanted, await freePort())
    const before = existsSync(options.console) ? readFileSync(options.console).length : 0
    const output = openSync(`${options.console}.qemu`, 'a')
    const within = options.netns ? ['nsenter', `--net=${options.netns}`] : []
    const usual = () => ['qemu-system-x86_64', ...qemuArguments(virtualMachine(options, port, ports))]
    const argv = [...tied, ...within, ...(options.emulator?.(port) ?? usual())]
    const qemu = Bun.spawn(argv, { stdin: 'ignore', stdout: output, stderr: output })
    closeSync(output)
    return new TestMachine(port, ports, options.console, before, qemu)
  }

  /** What the console has shown since power-on, or since `forget`. */
  get console(): string {
    return existsSync(this.#file) ? readFileSync(this.#file).subarray(this.#seen).toString() : ''
  }

  /** Ignores everything that the console has shown so far. */
  forget(): void {
    this.#seen = existsSync(this.#file) ? readFileSync(this.#file).length : 0
  }

  /** Whether it still has power. */
  get on(): boolean {
    return this.#qemu.exitCode === null && this.#qemu.signalCode === null
  }

  /** The emulator's process. */
  get pid(): number {
    return this.#qemu.pid
  }

  /** Waits until the console shows something. */
  async shows(what: RegExp, deadline: number): Promise<RegExpExecArray> {
    const until = performance.now() + deadline
    for (;;) {
      const found = what.exec(this.console)
      if (found) return found
      const end = this.console.trim().split('\n').slice(-15).join('\n')
      if (!this.on) throw new Error(`the machine went off (${this.#qemu.exitCode}) before it showed ${what}:\n${end}`)
      if (performance.now() > until) throw new Error(`the console does not show ${what}; its end (all of it in ${this.#file}):\n${end}`)
      await Bun.sleep(200)
    }
  }

  /** Polls until an answer is neither undefined nor false (an empty text is one); on timeout the error contains what was thrown last. */
  async until<T>(what: string, ask: () => Promise<T | undefined | false>, deadline: number): Promise<T> {
    const until = performance.now() + deadline
    for (let last: unknown; ; ) {
      const started = performance.now()
      try {
        const answer = await within(ask(), callLimit, () => new Error(`an attempt did not return within ${callLimit / 60_000} min`))
        if (answer !== undefined && answer !== false) return answer
        last = undefined
      } catch (error) {
        last = error
      }
      const end = this.console.trim().split('\n').slice(-10).join('\n')
      const why = last ? `: ${(last as Error).message}` : ''
      if (!this.on) throw new Error(`the machine went off before ${what}${why}; the end of its console:\n${end}`)
      if (performance.now() > until) throw new Error(`not in time: ${what}${why}; the end of its console (all in ${this.#file}):\n${end}`)
      // Polls less often when responses are slow, so as not to slow an emulated machine down further.
      await Bun.sleep(Math.min(10_000, Math.max(500, 4 * (performance.now() - started))))
    }
  }

  /** Runs a command until it succeeds and its output matches. */
  async outputs(command: () => Promise<CommandResult>, what: RegExp, deadline: number): Promise<string> {
    return this.until(
      `${what}`,
      async () => {
        const { code, stdout, stderr } = await command()
        if (code !== 0) throw new Error(stderr.trim())
        return what.test(stdout) && stdout
      },
      deadline,
    )
  }

  /** Runs talosctl against the machine. */
  async talosctl(...args: string[]): Promise<CommandResult> {
    return talosctl(['--endpoints', `127.0.0.1:${this.port}`, ...args])
  }

  /** Runs talosctl against the machine in maintenance. */
  async insecurely(...args: string[]): Promise<CommandResult> {
    return talosctl(['--nodes', `127.0.0.1:${this.port}`, ...args, '--insecure'])
  }

  /** Applies a configuration in maintenance, again until it is taken. */
  async takes(file: string, deadline: number): Promise<void> {
    await this.until(
      'the configuration is taken',
      async () => {
        const { code, stderr } = await this.insecurely('apply-config', '--file', file)
        if (code !== 0) throw new Error(stderr)
        return true
      },
      deadline,
    )
  }

  /** Waits until the machine has gone off by itself. */
  async off(deadline: number): Promise<void> {
    const late = Bun.sleep(deadline).then(() => {
      throw new Error(`the machine is still on; its console is in ${this.#file}`)
    })
    await Promise.race([this.#qemu.exited, late])
  }

  /** Pulls the plug. */
  async unplug(): Promise<void> {
    this.#qemu.kill('SIGKILL')
    await this.#qemu.exited
  }
}

/** Runs the talosctl that was built, with a timeout of ten minutes by default. */
export async function talosctl(args: readonly string[], env: Record<string, string> = {}, timeout = 600_000): Promise<CommandResult> {
  const child = Bun.spawn([join(dist, 'talosctl'), ...args], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout,
    // A program that ignores SIGTERM would be waited for without end.
    killSignal: 'SIGKILL',
    env: { ...process.env, ...env },
  })
  return finished(child)
}

/** Seconds after power-on, by the kernel's clock, at which a line was written. */
export function guestTime(console: string, what: RegExp): number | undefined {
  const line = console.split('\n').find((each) => what.test(each))
  const time = line && /^\[\s*(\d+\.\d+)\]/.exec(line)?.[1]
  return time === undefined ? undefined : Number(time)
}
