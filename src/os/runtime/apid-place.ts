import type { Logger } from '../../cosi/log.ts'
import type { Supervisor } from '../../supervise/supervisor.ts'

/** Where apid runs: in its container, or before there is a containerd as a plain process. */
export class ApidPlace {
  readonly #supervisor: Supervisor
  readonly #log: Pick<Logger, 'info'>
  #bare = false

  constructor(supervisor: Supervisor, log: Pick<Logger, 'info'>) {
    this.#supervisor = supervisor
    this.#log = log
  }

  /** Whether apid can run in its container by now; records the consequences of the answer. */
  isContainable(): boolean {
    const containerd = this.#supervisor.get('containerd')
    const can = containerd?.state === 'Running' && containerd.health.healthy === true
    this.#bare = !can
    return can
  }

  /** Moves apid into its container as soon as possible. */
  async contain(signal: AbortSignal): Promise<void> {
    await this.#supervisor.until('containerd', 'up', signal)
    if (!this.#bare) return
    this.#log.info('moving apid into its container')
    await this.#supervisor.restart('apid')
  }
}
