import { common } from '../../../rpc/enums.ts'
import { type Method, type Role, serverStream, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { LogQuery } from '../../../supervise/log-ring.ts'
import type { Machine } from '../../area.ts'
import { listContainers } from '../../cri/containers.ts'
import type { Kernel } from '../../kernel.ts'
import { followFile } from '../follow-file.ts'

const readers: Role[] = ['os:admin', 'os:operator', 'os:reader']
const podLogs = '/var/log/pods'

/** Logs of services, from memory, and of pods' containers, from their files. */
export function logMethods({ supervisor, kernel }: Pick<Machine, 'supervisor' | 'kernel'>): Method[] {
  return [
    unary('machine.MachineService/LogsContainers', readers, () => ({ messages: [{ ids: supervisor.logs.ids() }] })),
    serverStream('machine.MachineService/Logs', readers, async function* (request, { signal }) {
      const query: LogQuery = { tailLines: request.tailLines, follow: request.follow, signal }
      const pods = request.namespace === 'k8s.io' || (request.namespace === '' && request.driver === common.ContainerDriver.CRI)
      const source = pods ? followFile(kernel, await podLog(kernel, request.id), query) : serviceLog(supervisor, request.id, query)
      for await (const bytes of source) yield { bytes }
    }),
  ]
}

function serviceLog({ logs }: Machine['supervisor'], id: string, query: LogQuery): AsyncIterable<Uint8Array> {
  const ring = logs.get(id)
  if (!ring) throw new RpcError('NotFound', `log "${id}" was not registered`)
  return ring.read(query)
}

/** The log file of a pod's container: the newest container with that id has the file with the highest number. */
async function podLog({ files }: Pick<Kernel, 'files'>, id: string): Promise<string> {
  const all = await listContainers('k8s.io', common.ContainerDriver.CRI)
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
