import { layerSegments } from '../../../oci/layer.ts'
import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { httpProbe } from '../../../supervise/probe.ts'
import { task } from '../../../supervise/runner/task.ts'
import type { Machine } from '../../area.ts'
import { readImageTable } from '../image-table.ts'
import { type HeldPort, holdPort, registryPort, serveRegistry } from '../registryd.ts'
import { ImageCacheConfig } from '../resources/image-cache-config.ts'

/** Serves the container images that the root file system holds, so that nothing of the system is ever pulled. */
export const registrydService = (
  { kernel: { files }, store }: Pick<Machine, 'kernel' | 'store'>,
  port: number = registryPort,
): ServiceDefinition => {
  // Listens from the first start until init ends.
  let held: HeldPort | undefined
  return {
    id: 'registryd',
    dependsOn: [],
    runner: task('registryd', async ({ signal, output }) => {
      const images = readImageTable({ files })
      held ??= holdPort(port)
      const end = serveRegistry(held, {
        images,
        files,
        layout: layerSegments,
        caches: () => store.get(ImageCacheConfig, 'image-cache')?.spec.roots ?? [],
        sizeOf: (path) => files.lstatIfThere(path)?.size,
      })
      output.line(`serving ${images.images.length} images on 127.0.0.1:${held.port}`)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      end()
    }),
    health: { check: httpProbe(`http://127.0.0.1:${port}/healthz`) },
    restart: 'always',
  }
}
