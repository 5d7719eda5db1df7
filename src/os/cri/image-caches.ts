import { declared } from '../config/public.ts'
import type { Kernel } from '../kernel.ts'

/** Where the operator's images may be: on the medium that the machine started from, and on a volume of its disk. */
const places = ['/run/ichor/medium/imagecache', '/system/imagecache/disk']

/** The image caches that exist and are enabled (`machine.features.imageCache.localEnabled`). */
export function imageCaches({ files }: { files: Pick<Kernel['files'], 'exists'> }, config: Parameters<typeof declared>[0]): string[] {
  const wanted = declared(config)?.machine.features?.imageCache?.localEnabled === true
  return wanted ? places.filter((place) => files.exists(`${place}/manifests`)) : []
}
