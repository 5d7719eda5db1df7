/** A machine under emulation: QEMU without hardware help, its console in a file, its API on a port of the loopback. */
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What to start. */
export interface MachineOptions {
  /** Folder with ichor-vmlinuz, ichor-initramfs and ichor-cmdline. */
  image: string
  /** Where the console is kept. */
  console: string
  /** One more kernel parameter, or several. */
  append?: string
  /** Mebibytes. */
  memory?: number
}

/** Arguments of QEMU for a machine whose API is reached at 127.0.0.1:`port`. */
export function qemuArguments({ image, console, append = '', memory = 2048 }: MachineOptions, port: number): string[] {
  const line = `${readFileSync(join(image, 'ichor-cmdline'), 'utf8').trim()} ${append}`.trim()
  return [
    ...['-machine', 'q35', '-cpu', 'max', '-accel', 'tcg,thread=multi', '-smp', '2', '-m', String(memory)],
    ...['-display', 'none', '-monitor', 'none', '-no-reboot', '-nodefaults', '-serial', `file:${console}`],
    ...['-kernel', join(image, 'ichor-vmlinuz'), '-initrd', join(image, 'ichor-initramfs'), '-append', line],
    ...['-netdev', `user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:${port}-:50000`, '-device', 'virtio-net-pci,netdev=net,romfile='],
    ...['-device', 'virtio-rng-pci'],
  ]
}

/** A port that is free right now. */
export async function freePort(): Promise<number> {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = server
  server.stop(true)
  return port
}

/** A running machine. */
export class TestMachine {
  readonly port: number
  readonly #console: string
  readonly #qemu: Bun.Subprocess

  private constructor(port: number, console: string, qemu: Bun.Subprocess) {
    this.port = port
    this.#console = console
    this.#qemu = qemu
  }

  /** Powers a machine on. */
  static async start(options: MachineOptions): Promise<TestMachine> {
    const port = await freePort()
    const output = openSync(`${options.console}.qemu`, 'w')
    const argv = ['qemu-system-x86_64', ...qemuArguments(options, port)]
    const qemu = Bun.spawn(argv, { stdin: 'ignore', stdout: output, stderr: output })
    closeSync(output)
    return new TestMachine(port, options.console, qemu)
  }

  /** What the console has shown so far. */
  get console(): string {
    return existsSync(this.#console) ? readFileSync(this.#console, 'utf8') : ''
  }

  /** Waits until the console shows something. */
  async shows(what: RegExp, deadline: number): Promise<RegExpExecArray> {
    const until = performance.now() + deadline
    for (;;) {
      const found = what.exec(this.console)
      if (found) return found
      const end = this.console.trim().split('\n').slice(-15).join('\n')
      if (this.#qemu.exitCode !== null) throw new Error(`the machine went off (${this.#qemu.exitCode}) before it showed ${what}:\n${end}`)
      if (performance.now() > until) throw new Error(`the console does not show ${what}; its end (all of it in ${this.#console}):\n${end}`)
      await Bun.sleep(200)
    }
  }

  /** Waits until the machine has gone off by itself. */
  async off(deadline: number): Promise<void> {
    const late = Bun.sleep(deadline).then(() => {
      throw new Error(`the machine is still on; its console is in ${this.#console}`)
    })
    await Promise.race([this.#qemu.exited, late])
  }

  /** Pulls the plug. */
  async unplug(): Promise<void> {
    this.#qemu.kill('SIGKILL')
    await this.#qemu.exited
  }
}

/** Seconds after power-on, by the kernel's clock, at which a line was written. */
export function guestTime(console: string, what: RegExp): number | undefined {
  const line = console.split('\n').find((each) => what.test(each))
  const time = line && /^\[\s*(\d+\.\d+)\]/.exec(line)?.[1]
  return time === undefined ? undefined : Number(time)
}
