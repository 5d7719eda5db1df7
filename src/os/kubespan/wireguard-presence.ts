/** Whether this kernel has WireGuard. A module may be on its way; where there is none, it is asked only now and then, for each question starts a program. */
import type { Kernel } from '../kernel.ts'

/** Milliseconds: between two questions at first, for how long, and later. */
const soon = 500
const grace = 10_000
const later = 15_000

/** What was found, for all who ask. */
export class WireguardPresence {
  #there = false
  #since: number | undefined
  #asked = Number.NEGATIVE_INFINITY

  constructor(private readonly kernel: { readonly mode: Kernel['mode']; readonly wireguard: Pick<Kernel['wireguard'], 'hasWireguard'> }) {}

  /** `awaited` while a module may still come. */
  look(now: number): 'there' | 'awaited' | 'lacking' {
    this.#since ??= now
    if (!this.#there && now - this.#asked >= this.#pause(now)) {
      this.#asked = now
      this.#there = this.kernel.wireguard.hasWireguard()
    }
    if (this.#there) return 'there'
    return this.#hopeful(now) ? 'awaited' : 'lacking'
  }

  /** Milliseconds until it is worth another look. */
  again(now: number): number {
    return Math.max(1, this.#asked + this.#pause(now) - now)
  }

  #hopeful(now: number): boolean {
    return this.kernel.mode === 'metal' && now - (this.#since ?? now) < grace
  }

  #pause(now: number): number {
    return this.#hopeful(now) ? soon : later
  }
}
