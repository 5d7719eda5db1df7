/** Detects WireGuard in the kernel, or what it needs in user space. Each check may start a program, so it is repeated quickly only while a module may still be loading. */
import type { Kernel } from '../kernel.ts'

/** Milliseconds: initial interval, its duration, and the later interval. */
const soon = 500
const grace = 10_000
const later = 15_000

/** The shared result of the checks. */
export class WireguardPresence {
  #there = false
  #since: number | undefined
  #checked = Number.NEGATIVE_INFINITY

  constructor(
    private readonly kernel: {
      readonly mode: Kernel['mode']
      readonly wireguard: Pick<Kernel['wireguard'], 'hasWireguard' | 'canRunInUserSpace'>
    },
  ) {}

  /** `awaited` while a module may still be loading. */
  look(now: number): 'there' | 'awaited' | 'lacking' {
    this.#since ??= now
    if (!this.#there && now - this.#checked >= this.#pause(now)) {
      this.#checked = now
      const { wireguard } = this.kernel
      // The kernel's own is faster: user space is for those without a module that may still be loading.
      this.#there = wireguard.hasWireguard() || (!this.#hopeful(now) && wireguard.canRunInUserSpace())
    }
    if (this.#there) return 'there'
    return this.#hopeful(now) ? 'awaited' : 'lacking'
  }

  /** Milliseconds until the next check. */
  again(now: number): number {
    return Math.max(1, this.#checked + this.#pause(now) - now)
  }

  #hopeful(now: number): boolean {
    return this.kernel.mode === 'metal' && now - (this.#since ?? now) < grace
  }

  #pause(now: number): number {
    return this.#hopeful(now) ? soon : later
  }
}
