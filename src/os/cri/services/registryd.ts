import { layerSegments } from '../../../oci/layer.ts'
import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { httpProbe } from '../../../supervise/probe.ts'
import { task } from '../../../supervise/runner/task.ts'
import type { Machine } from '../../area.ts'
import { readImageTable } from '../image-table.ts'
import { registryPort, serveRegistry } from '../registryd.ts'

/** Serves the container images that the root file system holds, so that nothing of the system is ever pulled. */
export const registrydService = ({ kernel: { files } }: Machine): ServiceDefinition => ({
  id: 'registryd',
  dependsOn: [],
  runner: task('registryd', async ({ signal, output }) => {
    const images = readImageTable({ files })
    const server = serveRegistry({ images, files, layout: layerSegments, port: registryPort })
    output.line(`serving ${images.images.length} images on 127.0.0.1:${server.port}`)
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    await server.close()
  }),
  health: { check: httpProbe(`http://127.0.0.1:${registryPort}/healthz`) },
  restart: 'always',
})
