/** How the system's own services run as containers: limits of their control group, output into their log. */

import type { Containerd } from '../../supervise/containerd/client.ts'
import type { ImageContents } from '../../supervise/containerd/images.ts'
import { ociSpec, type SpecOptions } from '../../supervise/containerd/spec.ts'
import type { RunContext, Runner } from '../../supervise/definition.ts'
import { runProgram } from '../../supervise/run-program.ts'
import { container, type RootSource } from '../../supervise/runner/container.ts'
import type { Machine } from '../area.ts'
import { limitsOfGroup } from './groups.ts'

/** Pipes from the containers to init. */
const pipesFolder = '/system/run/pipes'

/** Milliseconds for runc to end what is left of a container. */
const deleteTimeout = 60_000

/** Where runc keeps its state of containers in namespace `system`, of either daemon. */
const runcState = '/run/containerd/runc/system'

/** The domain of containers that have none of their own. */
const unconfinedContainer = 'unconfined_container_t'

/** A service's settings of its container; identity, limits and plumbing are added. */
export type ServiceSpec = Omit<SpecOptions, 'cgroup' | 'limits' | 'oom' | 'cgroupVersion'>

/** A service's container in namespace `system` of a daemon. */
export function serviceContainer(
  { kernel, spawn }: Machine,
  containerd: Containerd,
  root: RootSource | ((context: RunContext) => RootSource),
  spec: (context: RunContext, image: ImageContents | undefined) => ServiceSpec | Promise<ServiceSpec>,
): Runner {
  return container({
    containerd,
    namespace: 'system',
    root,
    makePipe(id) {
      kernel.files.mkdirAll(pipesFolder, { mode: 0o700 })
      return kernel.fifo.makeEndingFifo(`${pipesFolder}/${id}`)
    },
    async purge(id) {
      if (!kernel.files.exists(`${runcState}/${id}`)) return
      const purpose = `remove leftovers of container "${id}": runc`
      await runProgram({ spawn }, ['/usr/bin/runc', '--root', runcState, 'delete', '--force', id], { timeout: deleteTimeout, purpose })
    },
    async spec(context, image) {
      const { cgroup, domain = unconfinedContainer } = context.definition
      return ociSpec({
        ...(await spec(context, image)),
        oom: context.oom,
        cgroup,
        selinuxLabel: kernel.selinux.processLabel(domain),
        limits: cgroup ? limitsOfGroup(cgroup) : {},
        cgroupVersion: kernel.cgroup.hierarchy().version,
      })
    },
  })
}

/** The node's own files without what is mounted over them: nothing in it is secret or can be changed. */
export const systemRoot: RootSource = { folder: '/', readonly: true }

/** Empty folders over those that a service of the system must not see. */
export const hiddenMounts = ['/system', '/run', '/tmp'].map((destination) => ({
  destination,
  type: 'tmpfs',
  source: 'tmpfs',
  options: ['nosuid', 'nodev', 'noexec', 'mode=755', 'size=16m'],
}))

/** Mounts a folder or file of the node in a container, at the same path by default. */
export function bindMount(source: string, { destination = source, writable = false, options = [] as readonly string[] } = {}) {
  return { destination, type: 'bind', source, options: ['rbind', writable ? 'rw' : 'ro', ...options] }
}
