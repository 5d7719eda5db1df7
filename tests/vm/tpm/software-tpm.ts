/** A TPM in software (Debian's `swtpm`) for an emulated machine: one process for each power-on, its state in a folder. */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** The TPM of a machine whose state is in `folder`. */
export class SoftwareTpm {
  readonly #folder: string
  #running: Bun.Subprocess | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  /** The control socket, for the emulator. */
  get socket(): string {
    return join(this.#folder, 'tpm.sock')
  }

  get #state(): string {
    return join(this.#folder, 'tpm')
  }

  /** Starts it; it ends with the machine that uses it. */
  async start(): Promise<void> {
    await this.stop()
    mkdirSync(this.#state, { recursive: true })
    const state = ['--tpmstate', `dir=${this.#state}`, '--ctrl', `type=unixio,path=${this.socket}`]
    this.#running = Bun.spawn(['swtpm', 'socket', '--tpm2', '--terminate', ...state], { stdout: 'ignore' })
    while (!existsSync(this.socket)) await Bun.sleep(20)
  }

  /** Takes the TPM out: the next one has other seeds, and nothing that this one has sealed opens with it. */
  async replace(): Promise<void> {
    await this.stop()
    rmSync(this.#state, { recursive: true, force: true })
  }

  /** Waits until it has ended with its machine, or ends it. */
  async stop(): Promise<void> {
    this.#running?.kill()
    await this.#running?.exited
    this.#running = undefined
    rmSync(this.socket, { force: true })
  }
}
