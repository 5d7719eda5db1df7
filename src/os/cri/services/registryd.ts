import { layerSegments } from '../../../oci/layer.ts'
import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { httpProbe } from '../../../supervise/probe.ts'
import { task } from '../../../supervise/runner/task.ts'
import type { Machine } from '../../area.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { imageCaches } from '../image-caches.ts'
import { readImageTable } from '../image-table.ts'
import { registryPort, serveRegistry } from '../registryd.ts'

/** Serves the container images that the root file system holds, so that nothing of the system is ever pulled. */
export const registrydService = ({ kernel: { files }, store }: Machine): ServiceDefinition => ({
  id: 'registryd',
  dependsOn: [],
  runner: task('registryd', async ({ signal, output }) => {
    const images = readImageTable({ files })
    const server = serveRegistry({
      images,
      files,
      layout: layerSegments,
      port: registryPort,
      caches: () => imageCaches({ files }, store.get(MachineConfig, 'v1alpha1')),
      sizeOf: (path) => files.lstatIfThere(path)?.size,
    })
    output.line(`serving ${images.images.length} images on 127.0.0.1:${server.port}`)
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    await server.close()
  }),
  health: { check: httpProbe(`http://127.0.0.1:${registryPort}/healthz`) },
  restart: 'always',
})
