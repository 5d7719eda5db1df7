/** A TPM in software (Debian's `swtpm`), reached over TCP in place of the kernel's device. */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Transmit } from '../../src/wire/tpm2/tpm.ts'
import { freePort } from './free-port.ts'

/** Why tests with a TPM are skipped; undefined where they run. */
export const noSwtpm = Bun.which('swtpm') ? undefined : 'swtpm is not installed: bun tests/linux/prepare.ts installs it'

/** A running TPM with empty state. */
export interface Swtpm extends AsyncDisposable {
  readonly transmit: Transmit
  /** The address for tpm2-tools (`-T`). */
  readonly tcti: string
  /** Restarts it: PCRs are reset, keys and seeds stay, as with a restart of the machine. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** The TPM of an emulated machine: its control socket, and the end of it. It starts with the machine, and keeps its state in the folder. */
export async function machineTpm(folder: string): Promise<{ socket: string; stop(): Promise<void> }> {
  const [state, socket] = [join(folder, 'tpm'), join(folder, 'tpm.sock')]
  mkdirSync(state, { recursive: true })
  const flags = ['--tpmstate', `dir=${state}`, '--ctrl', `type=unixio,path=${socket}`]
  const running = Bun.spawn(['swtpm', 'socket', '--tpm2', '--terminate', ...flags], { stdout: 'ignore' })
  while (!existsSync(socket) && running.exitCode === null) await Bun.sleep(20)
  return {
    socket,
    async stop() {
      running.kill()
      await running.exited
      rmSync(socket, { force: true })
    },
  }
}

/** Two ports in a row, as clients expect them. */
async function twoPorts(): Promise<number> {
  for (;;) {
    const [first, second] = [await freePort(), await freePort()]
    if (second === first + 1) return first
  }
}

/** Starts a TPM. */
export async function startSwtpm(): Promise<Swtpm> {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-swtpm-'))
  const port = await twoPorts()
  const listen = (number: number) => `type=tcp,port=${number},bindaddr=127.0.0.1`
  const flags = ['--tpmstate', `dir=${folder}`, '--flags', 'not-need-init,startup-clear']
  const start = () =>
    Bun.spawn(['swtpm', 'socket', '--tpm2', '--server', listen(port), '--ctrl', listen(port + 1), ...flags], { stdout: 'ignore' })
  let running = start()
  await answers(port)
  const stop = async () => {
    running.kill()
    await running.exited
    rmSync(folder, { recursive: true })
  }
  return {
    transmit: (command) => exchange(port, command),
    tcti: `swtpm:host=127.0.0.1,port=${port}`,
    async restart() {
      running.kill()
      await running.exited
      running = start()
      await answers(port)
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** Waits until the port is open: there is no other sign. */
async function answers(port: number): Promise<void> {
  const until = performance.now() + 10_000
  for (;;)
    try {
      const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } })
      socket.end()
      return
    } catch (error) {
      if (performance.now() > until) throw error
      await Bun.sleep(10)
    }
}

/** Sends one command on a connection of its own, so that other programs can connect in between. */
function exchange(port: number, command: Uint8Array): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  let received = Buffer.alloc(0)
  const socket = connect(port, '127.0.0.1', () => socket.write(command))
  socket.setTimeout(30_000, () => socket.destroy(new Error('swtpm does not answer')))
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    if (received.length >= 10 && received.length >= received.readUInt32BE(2)) socket.end()
  })
  socket.on('error', reject)
  socket.on('close', () => resolve(new Uint8Array(received)))
  return promise
}
