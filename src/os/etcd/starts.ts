/** Publishes the progress of etcd's starts, by which its settings are judged. */
import { background } from '../../cosi/background.ts'
import type { Logger } from '../../cosi/log.ts'
import type { SpecOf } from '../../cosi/resource.ts'
import type { Store } from '../../cosi/store.ts'
import { failedAs } from '../../supervise/containerd/client.ts'
import type { Runner } from '../../supervise/definition.ts'
import { lastWordsOf } from '../../supervise/last-words.ts'
import { messageOf } from '../../wire/error-message.ts'
import { EtcdStart } from './resources/etcd-start.ts'

type Start = SpecOf<typeof EtcdStart>

/** The starts of one machine's etcd. */
export class EtcdStarts {
  readonly #store: Store
  readonly #log: Logger

  constructor({ store, log }: { store: Store; log: Logger }) {
    this.#store = store
    this.#log = log
  }

  /** An attempt starts, with its image first. Failures are accumulated for as long as the settings stay. */
  begin({ settings, image }: Pick<Start, 'settings' | 'image'>): void {
    const { failures, error } = this.#of(settings) ?? { failures: 0, error: '' }
    this.#put({ settings, image, stage: 'image', failures, error })
  }

  /** The attempt with these settings has reached this stage. */
  at(settings: string, stage: Start['stage']): void {
    const start = this.#of(settings)
    if (start) this.#put({ ...start, stage })
  }

  /** The attempt failed because of its settings. */
  failed(settings: string, error: string): void {
    const start = this.#of(settings)
    if (start) this.#put({ ...start, failures: start.failures + 1, error })
  }

  /** A runner whose runs count as failed when they exit by themselves, or when none can be started. */
  counted(runner: Runner, settings: () => string): Runner {
    return async (context) => {
      const own = settings()
      const from = context.output.end
      try {
        const run = await runner(context)
        this.at(own, 'running')
        const ended = async () => {
          const { message } = await run.exit
          if (!context.signal.aborted) this.failed(own, (await lastWordsOf(context.output, from)).split('\n').at(-1) || message)
        }
        background(ended(), this.#log, 'watching the end of etcd failed')
        return run
      } catch (error) {
        // An unreachable containerd does not count against etcd's settings.
        if (!context.signal.aborted && !failedAs(error, 'Unavailable')) this.failed(own, messageOf(error))
        throw error
      }
    }
  }

  #of(settings: string): Start | undefined {
    const start = this.#store.get(EtcdStart, 'etcd')?.spec
    return start?.settings === settings ? start : undefined
  }

  #put(start: Start): void {
    this.#store.put(EtcdStart, 'etcd', start)
  }
}
