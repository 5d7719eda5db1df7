import { type Method, operators, readers, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { type ListedContainer, listContainers } from '../containers.ts'

/** Containers of the system or of pods: list, resource usage, and restart. */
export function containerMethods({ kernel }: Pick<Machine, 'kernel'>): Method[] {
  const usageOf = ({ cgroup, status }: ListedContainer) => {
    if (cgroup === '' || !/RUNNING|READY/.test(status)) return { memory: 0, cpu: 0n }
    return kernel.cgroup.usage(cgroup)
  }
  return [
    unary('machine.MachineService/Containers', readers, async ({ namespace, driver }) => ({
      messages: [{ containers: await listContainers(namespace, driver) }],
    })),
    unary('machine.MachineService/Stats', readers, async ({ namespace, driver }) => {
      const stats = (await listContainers(namespace, driver)).map((container) => {
        const { memory, cpu } = usageOf(container)
        const { id, podId, name } = container
        return { namespace: container.namespace, id, podId, name, memoryUsage: memory, cpuUsage: Number(cpu) }
      })
      return { messages: [{ stats }] }
    }),
    unary('machine.MachineService/Restart', operators, async ({ namespace, driver, id }) => {
      const found = (await listContainers(namespace, driver)).find((container) => container.id === id || container.internalId === id)
      if (!found) throw new RpcError('NotFound', `container "${id}" does not exist`)
      if (found.pid === 0) throw new RpcError('FailedPrecondition', `container "${id}" does not run`)
      // The supervisor or the kubelet starts the container again.
      kernel.process.kill(found.pid, 'SIGTERM')
      return { messages: [{}] }
    }),
  ]
}
