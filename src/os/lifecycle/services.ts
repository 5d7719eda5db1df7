import type { Machine } from '../area.ts'

/** Loads a service as its area describes it and asks it to run. */
export function startService({ supervisor, service }: Machine, id: string): void {
  supervisor.load(service(id))
  supervisor.start(id)
}
