import { common } from '../../../rpc/enums.ts'
import { type Method, readers, serverStream, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { LogQuery } from '../../../supervise/log-ring.ts'
import type { Machine } from '../../area.ts'
import { type ListedContainer, listContainers } from '../../cri/public.ts'
import type { Kernel } from '../../kernel.ts'
import { followFile } from '../follow-file.ts'
import { kernelLines } from '../kernel-lines.ts'

const podLogs = '/var/log/pods'
const kernelLog = 'kernel'

/** Where logs come from. */
interface LogSources extends Pick<Machine, 'supervisor' | 'logFiles'> {
  readonly kernel: Pick<Kernel, 'files' | 'kmsg' | 'time'>
}

/** Logs of services, from memory, and of pods' containers, from their files. */
export function logMethods({ supervisor, kernel, logFiles }: LogSources, containers: typeof listContainers = listContainers): Method[] {
  return [
    unary('machine.MachineService/LogsContainers', readers, () => ({ messages: [{ ids: [...supervisor.logs.ids(), kernelLog].sort() }] })),
    serverStream('machine.MachineService/Logs', readers, async function* (request, { signal }) {
      const query: LogQuery = { tailLines: request.tailLines, follow: request.follow, signal }
      const pods = request.namespace === 'k8s.io' || (request.namespace === '' && request.driver === common.ContainerDriver.CRI)
      // A pod that mounts /var/log can create links there.
      const source = pods
        ? followFile(kernel, podLog(kernel, await containers('k8s.io', common.ContainerDriver.CRI), request.id), query, { below: podLogs })
        : ownLog({ supervisor, kernel, logFiles }, request.id, query)
      for await (const bytes of source) yield { bytes }
    }),
    serverStream('ichor.v1.LogService/Previous', readers, async function* ({ id, tailLines }) {
      const log = logFiles.previous(id)
      if (!log) throw new RpcError('NotFound', `log "${id}" has nothing of the start before this one`)
      for (const bytes of log.read(tailLines)) yield { bytes }
    }),
  ]
}

function ownLog({ supervisor, kernel }: LogSources, id: string, query: LogQuery): AsyncIterable<Uint8Array> {
  if (id === kernelLog) return lastOfKernel(kernel, query)
  const ring = supervisor.logs.get(id)
  if (!ring) throw new RpcError('NotFound', `log "${id}" was not registered`)
  return ring.read(query)
}

/** The kernel's log: all of it or its last lines, then new ones as they come. */
async function* lastOfKernel(kernel: LogSources['kernel'], { tailLines = -1, follow, signal }: LogQuery): AsyncGenerator<Uint8Array> {
  let last = -1
  const seen = (sequence: number) => {
    last = sequence
  }
  const now = await Array.fromAsync(kernelLines(kernel, { signal, seen }))
  yield* tailLines < 0 ? now : now.slice(Math.max(0, now.length - tailLines))
  if (follow) yield* kernelLines(kernel, { follow, after: last, signal })
}

/** The log file of a pod's container: the newest container with that id has the file with the highest number. */
function podLog({ files }: Pick<Kernel, 'files'>, all: readonly ListedContainer[], id: string): string {
  const found = all.find((container) => container.id === id) ?? all.find(({ podId, name }) => `${podId}:${name}` === id)
  if (!found || found.id === found.podId) throw new RpcError('NotFound', `container "${id}" was not found`)
  const siblings = all.filter(({ uid, name, id: other }) => uid === found.uid && name === found.name && other !== found.podId)
  const age = siblings.filter(({ created }) => created > found.created).length
  const folder = `${podLogs}/${found.podId.replace('/', '_')}_${found.uid}/${found.name}`
  const logs = files.list(folder).filter((name) => /^\d+\.log$/.test(name))
  const log = logs.sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10))[age]
  if (!log) throw new RpcError('NotFound', `container "${id}" has no log`)
  return `${folder}/${log}`
}
