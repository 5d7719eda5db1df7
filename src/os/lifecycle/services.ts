import type { Machine } from '../area.ts'

/** Loads a service as defined by its area and starts it. */
export function startService({ supervisor, service }: Machine, id: string): void {
  supervisor.load(service(id))
  supervisor.start(id)
}
