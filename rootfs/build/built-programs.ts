/** Every program that is built here, from the cache or from source. */
import { join } from 'node:path'
import { exclusive } from './exclusive.ts'
import { buildGo } from './go.ts'
import { cni, containerd, kube, kubectl, runc } from './go-recipes.ts'
import { buildPause } from './pause.ts'

/** The built programs by name. */
export interface BuiltPrograms {
  kube: string
  kubectl: string
  containerd: string
  runc: string
  cni: string
  pause: string
  /** Those that were not in the cache. */
  built: string[]
}

/** Builds what is missing; one build at a time. */
export async function buildPrograms(): Promise<BuiltPrograms> {
  return exclusive('parts', async () => {
    const parts = { built: [] as string[] } as BuiltPrograms
    for (const recipe of [kube, containerd, runc, cni, kubectl]) {
      const name = recipe.name as keyof Omit<BuiltPrograms, 'built'>
      const { folder, built } = await buildGo(recipe)
      parts[name] = join(folder, name)
      if (built) parts.built.push(name)
    }
    const pause = await buildPause()
    parts.pause = join(pause.folder, 'pause')
    if (pause.built) parts.built.push('pause')
    return parts
  })
}
