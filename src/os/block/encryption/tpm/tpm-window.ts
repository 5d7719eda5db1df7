/**
 * The time in which the TPM seals and unseals: from the start of init until all volumes are open. Then PCR 11 is extended once
 * more, so that what runs later, a pod that broke out included, cannot unseal the keys of the disks until the next start.
 */
import { SerialQueue } from '../../../../timing/serial-queue.ts'
import { Tpm } from '../../../../wire/tpm2/tpm.ts'
import type { Kernel } from '../../../kernel.ts'
import { KeyError } from '../passphrase.ts'

/** The PCR that the stub extends by the sections of the image, and the start by its phases. */
export const imagePcr = 11

/** Words of the phases, as the field measures them. Stage 0 measures `enter-initrd` and `leave-initrd` before. */
const phases = { open: 'enter-machined', closed: 'start-the-world' } as const

/** The TPM of this start. */
export class TpmWindow {
  #phase: 'before' | 'open' | 'closed' = 'before'
  readonly #queue = new SerialQueue()
  readonly #measured: string[] = []
  readonly #listeners = new Set<() => void>()

  constructor(readonly kernel: { readonly tpm: Pick<Kernel['tpm'], 'openTpm'> }) {}

  get isClosed(): boolean {
    return this.#phase === 'closed'
  }

  /** Measures that init runs, once. Resolves to false on a machine without a TPM 2.0. */
  open(): Promise<boolean> {
    return this.#inTurn(async (tpm) => {
      await this.#enter(tpm)
      return true
    }).catch(noneIs(false))
  }

  /** Runs commands, one user after another. Throws KeyError where there is no TPM or the window is closed. */
  use<T>(run: (tpm: Tpm) => Promise<T>): Promise<T> {
    return this.#inTurn(async (tpm) => {
      if (this.#phase === 'closed')
        throw new KeyError('the TPM seals and unseals only until all volumes are open: restart the machine, then it does so again')
      await this.#enter(tpm)
      return run(tpm)
    })
  }

  /** Calls a function after each phase that is measured. */
  subscribe(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /** Runs commands that need no secret, at any time, with the words measured so far; resolves to undefined without a TPM 2.0. */
  observe<T>(run: (tpm: Tpm, measured: readonly string[]) => Promise<T>): Promise<T | undefined> {
    return this.#inTurn((tpm) => run(tpm, [...this.#measured])).catch(noneIs(undefined))
  }

  /** Closes the window until the next start. */
  async close(): Promise<void> {
    await this.#inTurn(async (tpm) => {
      if (this.#phase !== 'open') return
      await this.#measure(tpm, 'closed')
    })
  }

  async #enter(tpm: Tpm): Promise<void> {
    if (this.#phase !== 'before') return
    await this.#measure(tpm, 'open')
  }

  async #measure(tpm: Tpm, phase: keyof typeof phases): Promise<void> {
    await tpm.measure(imagePcr, Buffer.from(phases[phase]))
    this.#measured.push(phases[phase])
    this.#phase = phase
    for (const listener of this.#listeners) listener()
  }

  #inTurn<T>(run: (tpm: Tpm) => Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      const device = await this.kernel.tpm.openTpm()
      if (!device) throw new NoTpm()
      try {
        return await run(new Tpm((command) => device.transmit(command)))
      } finally {
        await device.close()
      }
    })
  }
}

/** The machine has no TPM 2.0. */
class NoTpm extends KeyError {
  constructor() {
    super('the machine has no TPM 2.0: switch it on in the firmware, or use another kind of key')
  }
}

const noneIs =
  <T>(value: T) =>
  (error: unknown): T => {
    if (error instanceof NoTpm) return value
    throw error
  }
