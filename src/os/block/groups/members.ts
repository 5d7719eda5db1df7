import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import type { DiscoveredVolume } from '../resources/discovered-volume.ts'

type Volumes = readonly Resource<SpecOf<typeof DiscoveredVolume>>[]

/**
 * The devices that have a signature since they were first seen. One that was written while the machine runs is left to the program
 * that wrote it, such as a storage driver of Kubernetes, until the next start.
 */
export class Members {
  readonly #had = new Map<string, boolean>()
  readonly #done = new Set<string>()

  constructor(readonly signature: string) {}

  /** Device paths of the members with which nothing was done yet, sorted. */
  waiting(volumes: Volumes): string[] {
    const paths = new Map(volumes.map(({ spec }) => [spec.dev_path, spec.name === this.signature]))
    for (const path of this.#had.keys()) if (!paths.has(path)) this.#forget(path)
    for (const [path, has] of paths) {
      if (!this.#had.has(path)) this.#had.set(path, has)
      // Once wiped it counts as written at run time, whatever comes then.
      else if (!has) this.#had.set(path, false)
    }
    return [...this.#had].flatMap(([path, has]) => (has && !this.#done.has(path) ? [path] : [])).sort()
  }

  done(path: string): void {
    this.#done.add(path)
  }

  #forget(path: string): void {
    this.#had.delete(path)
    this.#done.delete(path)
  }
}
