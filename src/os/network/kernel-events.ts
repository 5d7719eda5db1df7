import type { Kernel } from '../kernel.ts'

type Subject = import('../../linux/net.ts').NetworkSubject

/** Wakes a controller whenever the kernel tells of a change; a subscription that breaks is made anew. */
export function onChange(net: Pick<Kernel['net'], 'watchNetwork'>, subjects: Subject[]) {
  return ({
    wake,
    signal,
    log,
  }: {
    wake: () => void
    signal: AbortSignal
    log: { warn(message: string, fields?: Record<string, unknown>): void }
  }) => {
    void (async () => {
      while (!signal.aborted) {
        try {
          for await (const _ of net.watchNetwork(subjects, { signal })) wake()
        } catch (error) {
          log.warn('watching the network failed, it begins anew', { error: error instanceof Error ? error.message : String(error) })
          await new Promise((resolve) => setTimeout(resolve, 1000))
        }
      }
    })()
  }
}
